package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bellbird/audio"
	"bellbird/wake"
	"bellbird/wake/eval"
)

// evalModels are the flags that name a model and where it is; without one, the test is skipped.
func evalModels(t *testing.T) []string {
	t.Helper()
	if _, err := wake.FindModel("alexa", modelDirs); err != nil {
		t.Skip(err)
	}
	return []string{"wake", "eval", "--models", strings.Join(modelDirs, ","), "--words", "alexa"}
}

// hum writes a recording of two seconds without any word and returns its path.
func hum(t *testing.T, path string) string {
	t.Helper()
	w, err := audio.CreateWAV(path, 1)
	if err != nil {
		t.Fatal(err)
	}
	samples := make([]int16, 32000)
	for i := range samples {
		samples[i] = int16(i * i * 37 % 4001)
	}
	if err := w.WriteSamples(samples); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWakeEvalErrors(t *testing.T) {
	flags := evalModels(t)
	dir := t.TempDir()
	good := hum(t, filepath.Join(dir, "good.wav"))
	none := filepath.Join(dir, "none")
	if err := os.Mkdir(none, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args []string
		code int
		want []string
	}{
		"nothing":           {nil, exitUsage, []string{"--positive", "--negative"}},
		"a file as words":   {[]string{good}, exitUsage, []string{good, "--help"}},
		"no folder":         {[]string{"--positive", "/no/such/dir"}, exitUsage, []string{"--positive", "/no/such/dir"}},
		"nothing in it":     {[]string{"--negative", none}, exitUsage, []string{"--negative", none, ".wav", "give another"}},
		"no such preset":    {[]string{"--positive", good, "--preset", "mine"}, exitUsage, []string{`"mine"`, publicBenchmark}},
		"preset, no noise":  {[]string{"--positive", good, "--preset", publicBenchmark}, exitUsage, []string{"--noise"}},
		"ratio, no noise":   {[]string{"--positive", good, "--snr", "3"}, exitUsage, []string{"--snr", "--noise"}},
		"no ratio":          {[]string{"--positive", good, "--noise", good, "--snr", "NaN"}, exitUsage, []string{"--snr NaN", "-100 to 100"}},
		"no time":           {[]string{"--positive", good, "--hours", "0"}, exitUsage, []string{"--hours 0"}},
		"negative workers":  {[]string{"--positive", good, "--workers", "-1"}, exitUsage, []string{"--workers -1"}},
		"no model":          {[]string{"--positive", good, "--words", "nobody"}, exitUsage, []string{"nobody", "make models"}},
		"nowhere to plot":   {[]string{"--positive", good, "--svg", "/no/such/dir/x.svg"}, exitUsage, []string{"--svg", "/no/such/dir/x.svg"}},
		"only silent noise": {[]string{"--positive", good, "--noise", silence(t, dir), "--snr", "3"}, exitFailed, []string{"silent"}},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := execute(t.Context(), append(flags[:len(flags):len(flags)], test.args...), &stdout, &stderr)
			t.Log(strings.TrimSpace(stderr.String()))
			if code != test.code || stdout.Len() > 0 {
				t.Errorf("exit code %d, want %d; %q", code, test.code, stdout.String())
			}
			for _, part := range test.want {
				if !strings.Contains(stderr.String(), part) {
					t.Errorf("%q is not in it", part)
				}
			}
		})
	}
}

// silence writes a recording of nothing and returns its path.
func silence(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "silence.wav")
	if err := os.WriteFile(path, audio.EncodeWAV(make([]audio.Frame, 50)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A bad file doesn't keep the others from being measured, but the exit code tells; a file that is a positive, or
// excepted, is no negative.
func TestWakeEval(t *testing.T) {
	flags := evalModels(t)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "deep"), 0o700); err != nil {
		t.Fatal(err)
	}
	said, other := hum(t, filepath.Join(dir, "said.wav")), hum(t, filepath.Join(dir, "other.WAV"))
	hum(t, filepath.Join(dir, "deep", "negative.wav"))
	bad := filepath.Join(dir, "bad.flac")
	if err := os.WriteFile(bad, []byte("no sound"), 0o600); err != nil {
		t.Fatal(err)
	}
	plot := filepath.Join(dir, "plot.svg")
	args := append(flags, "--positive", said, "--negative", dir, "--except", other, "--json", "--svg", plot)
	var stdout, stderr bytes.Buffer
	code := execute(t.Context(), args, &stdout, &stderr)
	if code != exitFailed || !strings.Contains(stderr.String(), bad) {
		t.Errorf("exit code %d, %q", code, stderr.String())
	}
	var r eval.Report
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	c := r.Words[0].Conditions[0]
	if c.Positives != 1 || c.Negatives != 1 || r.LeftOut != 1 || len(c.Missed) != 1 || c.Missed[0].File != said {
		t.Errorf("%+v", c)
	}
	if svg, err := os.ReadFile(plot); err != nil || !bytes.Contains(svg, []byte("</svg>")) {
		t.Error("no plot:", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	stderr.Reset()
	if code := execute(ctx, args, &stdout, &stderr); code != exitFailed || !strings.Contains(stderr.String(), "interrupted") {
		t.Errorf("interrupted: exit code %d, %q", code, stderr.String())
	}
}

// A model of openWakeWord's is looked for and measured as any other; what is missing is named.
func TestWakeOpenWakeWord(t *testing.T) {
	const models = "../../../shared/data/models/openwakeword"
	const call = "../../../shared/data/speech/wake/reference_tests/alexa_pymicro_1.flac"
	for _, path := range []string{models, call} {
		if _, err := os.Stat(path); err != nil {
			t.Skip(err)
		}
	}
	var stdout, stderr bytes.Buffer
	flags := []string{"--models", models, "--words", "alexa_v0.1"}
	if code := execute(t.Context(), append([]string{"wake", "--json", call}, flags...), &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d, %q", code, stderr.String())
	}
	var found finding
	if err := json.Unmarshal(stdout.Bytes(), &found); err != nil {
		t.Fatal(err)
	}
	if len(found.Detections) != 1 || found.Detections[0].Word != "alexa_v0.1" || !(found.Detections[0].Score > 0.5) {
		t.Errorf("%+v", found)
	}
	stdout.Reset()
	negative := hum(t, filepath.Join(t.TempDir(), "negative.wav"))
	args := append([]string{"wake", "eval", "--json", "--positive", call, "--negative", negative}, flags...)
	if code := execute(t.Context(), args, &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d, %q", code, stderr.String())
	}
	var r eval.Report
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	c := r.Words[0].Conditions[0]
	if r.Words[0].Manifest != 0.5 || c.Positives != 1 || len(c.Missed) != 0 || len(c.Accepted) != 0 {
		t.Errorf("%+v", c)
	}

	abs, err := filepath.Abs(models)
	if err != nil {
		t.Fatal(err)
	}
	alone := t.TempDir()
	if err := os.Symlink(filepath.Join(abs, "alexa_v0.1.tflite"), filepath.Join(alone, "alexa_v0.1.tflite")); err != nil {
		t.Fatal(err)
	}
	stderr.Reset()
	code := execute(t.Context(), []string{"wake", "--models", alone, "--words", "alexa_v0.1", call}, &stdout, &stderr)
	if code != exitUsage || !strings.Contains(stderr.String(), `"melspectrogram.tflite" is missing`) || !strings.Contains(stderr.String(), alone) {
		t.Errorf("exit code %d, %q", code, stderr.String())
	}
}
