//go:build !race

package malgo_test

const underRace = false
