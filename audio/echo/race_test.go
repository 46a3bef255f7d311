//go:build race

package echo_test

const underRace = true
