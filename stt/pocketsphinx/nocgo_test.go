//go:build !cgo

package pocketsphinx

import (
	"strings"
	"testing"
)

func TestNoCgo(t *testing.T) {
	_, err := New(Options{}, Grammar{})
	if err == nil || !strings.Contains(err.Error(), "CGO_ENABLED=1") {
		t.Errorf("got %v, want how to get a binary with cgo", err)
	}
}
