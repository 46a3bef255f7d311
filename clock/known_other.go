//go:build !linux

package clock

// Known tells whether the machine knows the time of day. Here it is taken to.
func Known() bool { return true }
