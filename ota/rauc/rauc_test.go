package rauc_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"bellbird/ota"
	"bellbird/ota/otatest"
	"bellbird/ota/rauc"
)

func TestMachine(t *testing.T) {
	otatest.Conform(t, func(t *testing.T) otatest.Rig {
		m := otatest.NewMachine("board", "1.0")
		return otatest.Rig{
			Slots: m, Board: m.Board, Boot: func(*testing.T) { m.Boot() },
			Bundle: func(t *testing.T, compatible, version string, signed bool) string {
				path := filepath.Join(t.TempDir(), "bundle")
				if err := otatest.WriteBundle(path, compatible, version, signed); err != nil {
					t.Fatal(err)
				}
				return path
			},
		}
	})
}

func TestRAUC(t *testing.T) {
	otatest.Conform(t, func(t *testing.T) otatest.Rig {
		d := newDevice(t)
		return otatest.Rig{Slots: d.slots(), Board: board, Boot: d.boot, Bundle: d.bundle}
	})
}

// Where there is no bus or no RAUC on it, the error says what to install.
func TestNoRAUC(t *testing.T) {
	_, err := rauc.Slots{Address: "unix:path=" + t.TempDir() + "/bus"}.Slots(t.Context())
	if !errors.Is(err, ota.ErrNoSlots) || !strings.Contains(err.Error(), "install the package") {
		t.Errorf("no bus: %v", err)
	}
	d := newDevice(t)
	d.stop()
	_, err = d.slots().Slots(t.Context())
	if !errors.Is(err, ota.ErrNoSlots) || !strings.Contains(err.Error(), "rauc-service") {
		t.Errorf("no RAUC: %v", err)
	}
}
