package wake

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const manifestV2 = `{"type": "micro", "wake_word": "Test", "model": "test.tflite", "version": 2,
	"micro": {"probability_cutoff": 0.9, "feature_step_size": 10, "sliding_window_size": 5}}`

// modelDir is a directory with the manifest "test.json" and the file "test.tflite".
func modelDir(t *testing.T, manifest string, model []byte) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "test.json"), []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	if model != nil {
		if err := os.WriteFile(filepath.Join(dir, "test.tflite"), model, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// someModel is the file of a model that is there.
func someModel(t *testing.T) []byte {
	t.Helper()
	for _, dir := range modelDirs() {
		if data, err := os.ReadFile(filepath.Join(dir, "alexa.tflite")); err == nil {
			return data
		}
	}
	t.Skipf("no alexa.tflite in %v", modelDirs())
	return nil
}

func TestBadModels(t *testing.T) {
	change := func(old, new string) string { return strings.Replace(manifestV2, old, new, 1) }
	for _, tt := range []struct {
		name, manifest string
		model          []byte
		want           string
	}{
		{"no model", manifestV2, nil, `model file "test.tflite" named by test.json is missing: put it into`},
		{"no JSON", "{", nil, `manifest "test.json": unexpected end of JSON input`},
		{"other type", change("micro", "openWakeWord"), nil, `manifest "test.json": "type" is "openWakeWord", not "micro"`},
		{"version", change(`"version": 2`, `"version": 3`), nil, `manifest "test.json": version 3, not 1 or 2`},
		{"step", change("10", "15"), nil, `manifest "test.json": "feature_step_size" is 15, not 10 or 20`},
		{"window", change(`_size": 5`, `_size": 0`), nil, `manifest "test.json": "sliding_window_size" is 0, not 1 to 100`},
		{"cutoff", change("0.9", "9"), nil, `manifest "test.json": "probability_cutoff" is 9, not between 0 and 1`},
		{"elsewhere", change("test.tflite", "../x.tflite"), nil, `manifest "test.json": "model" is "../x.tflite", not the name of a file beside it`},
		{"no TFLite", manifestV2, []byte("GGUF GGUF GGUF"), `model "test.tflite": not a TensorFlow Lite model`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := LoadModel(filepath.Join(modelDir(t, tt.manifest, tt.model), "test.json"))
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("error %q, not %q", err, tt.want)
			}
		})
	}
}

func TestTruncatedModel(t *testing.T) {
	data := someModel(t)
	_, err := LoadModel(filepath.Join(modelDir(t, manifestV2, data[:len(data)/2]), "test.json"))
	if err == nil || !strings.HasPrefix(err.Error(), `model "test.tflite": truncated at byte `) {
		t.Errorf("error %q doesn't say that it is truncated", err)
	}
}

func TestFirstVersion(t *testing.T) {
	m, err := LoadModel(filepath.Join(modelDir(t, `{"type": "micro", "wake_word": "Test", "model": "test.tflite", "version": 1,
		"micro": {"probability_cutoff": 0.5, "sliding_window_average_size": 10}}`, someModel(t)), "test.json"))
	if err != nil {
		t.Fatal(err)
	}
	if m.Name != "test" || m.Window != 10 || m.Step != 20*time.Millisecond || m.Cutoff != 0.5 {
		t.Errorf("%+v", m)
	}
}

func TestWrongShape(t *testing.T) {
	// 40 channels of the input become 20: everything that depends on them is wrong.
	data := someModel(t)
	old := "\x03\x00\x00\x00\x01\x00\x00\x00\x03\x00\x00\x00\x28\x00\x00\x00"
	n := strings.Index(string(data), old)
	if n < 0 {
		t.Skip("the model's input isn't 1 × 3 × 40")
	}
	wrong := []byte(string(data[:n]) + old[:12] + "\x14\x00\x00\x00" + string(data[n+16:]))
	_, err := LoadModel(filepath.Join(modelDir(t, manifestV2, wrong), "test.json"))
	if err == nil || !strings.HasPrefix(err.Error(), `model "test": `) {
		t.Errorf("error %v", err)
	}
}

func TestFindModel(t *testing.T) {
	dir := modelDir(t, manifestV2, nil)
	_, err := FindModel("okay_nabu", []string{"/nowhere", dir})
	var nf *NotFound
	if !errors.As(err, &nf) {
		t.Fatalf("error %v isn't NotFound", err)
	}
	want := fmt.Sprintf(`wake word model "okay_nabu": not found in /nowhere, %s (there are test); in a source checkout, run "make models"`, dir)
	if err.Error() != want {
		t.Errorf("error %q, not %q", err, want)
	}
	if _, err := FindModel("../okay_nabu", []string{dir}); err == nil || errors.As(err, &nf) {
		t.Errorf("a path for a name: %v", err)
	}
	if _, err := LoadModel(filepath.Join(dir, "other.json")); err == nil || err.Error() != `manifest "other.json" is missing in `+dir {
		t.Errorf("error %v", err)
	}
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(manifestV2))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "x.json")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := readManifest(path)
		if err == nil && (!json.Valid(data) || m.Micro.Window < 1 || m.Micro.Step < 10) {
			t.Errorf("accepted %q as %+v", data, m)
		}
	})
}
