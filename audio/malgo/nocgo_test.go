//go:build !cgo

package malgo_test

import (
	"strings"
	"testing"

	"bellbird/audio"
	"bellbird/audio/malgo"
)

func TestWithoutCgo(t *testing.T) {
	_, err := malgo.Open(malgo.Options{}, audio.NewOutput(0))
	if err == nil || !strings.Contains(err.Error(), "built without cgo") {
		t.Errorf("got %v", err)
	}
	if _, _, err := malgo.Devices(""); err == nil {
		t.Error("devices were listed")
	}
}
