package ota

import (
	"regexp"
	"strings"

	deb "github.com/knqyf263/go-deb-version"
)

// commitName is what a build calls itself that knows of no release.
var commitName = regexp.MustCompile(`^([0-9]*[a-f][0-9a-f]*)(-dirty)?$`)

var preRelease = strings.NewReplacer("-rc", "~rc", "-beta", "~beta", "-alpha", "~alpha")

const maxVersion = 64 // bytes

// compare tells whether version a is older than b (less than zero), the same, or newer. Versions are ordered as Debian
// orders them: 1.10 is newer than 1.9, 1.10+2 is newer than 1.10, and 1.10~rc1, which may be written 1.10-rc1, is older. A
// "v" before it doesn't matter. What is no version is older than all that are.
func compare(a, b string) int {
	va, oka := parseVersion(a)
	vb, okb := parseVersion(b)
	switch {
	case oka && okb:
		return va.Compare(vb)
	case oka:
		return 1
	case okb:
		return -1
	}
	return 0
}

func parseVersion(s string) (deb.Version, bool) {
	if len(s) > maxVersion || commitName.MatchString(s) {
		return deb.Version{}, false
	}
	v, err := deb.NewVersion(preRelease.Replace(strings.TrimPrefix(s, "v")))
	return v, err == nil
}
