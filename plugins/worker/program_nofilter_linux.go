//go:build !(amd64 || arm64 || arm)

package worker

func (p *Program) filterCalls() error { return filterCalls() }
