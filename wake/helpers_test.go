package wake

import (
	"encoding/csv"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/mewkiz/flac"
)

// Where models and recordings are, seen from this directory. Tests that need them skip where they are absent.
const (
	sharedData   = "../../shared/data"
	sharedModels = sharedData + "/models/microwakeword"
	speech       = sharedData + "/speech"
)

// modelDirs are those of the appliance's own models, then of the test data.
func modelDirs() []string { return []string{"../models", sharedModels} }

func newDetector(t testing.TB, name string) *Detector {
	t.Helper()
	m, err := FindModel(name, modelDirs())
	if nf := (*NotFound)(nil); errors.As(err, &nf) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	d, err := NewDetector(m, 0)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// recordings are the FLAC files of some folders of the test data; it skips where there are none.
func recordings(t testing.TB, folders ...string) (paths []string) {
	t.Helper()
	for _, f := range folders {
		p, err := filepath.Glob(filepath.Join(speech, f, "*.flac"))
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, p...)
	}
	if len(paths) == 0 {
		t.Skipf("no recordings in %s", speech)
	}
	return paths
}

// readFLAC is the first channel of a recording at 16 kHz.
func readFLAC(t testing.TB, path string) (samples []int16) {
	t.Helper()
	s, err := flac.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Info.SampleRate != sampleRate || s.Info.BitsPerSample != 16 {
		t.Fatalf("%s: %d Hz, %d bit", path, s.Info.SampleRate, s.Info.BitsPerSample)
	}
	for {
		f, err := s.ParseNext()
		if errors.Is(err, io.EOF) {
			return samples
		} else if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, x := range f.Subframes[0].Samples {
			samples = append(samples, int16(x))
		}
	}
}

// labels are those of the recordings, by path below speech.
func labels(t testing.TB) map[string]string {
	t.Helper()
	f, err := os.Open(filepath.Join(speech, "MANIFEST.csv"))
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	m := make(map[string]string)
	for _, r := range rows[1:] {
		m[r[0]] = r[2]
	}
	return m
}

// A generator makes the same noise each time.
type generator uint32

func (g *generator) next() int {
	*g = *g*1664525 + 1013904223
	return int(*g >> 16)
}

// hiss is n samples of white noise of the given amplitude.
func (g *generator) hiss(n, amplitude int) []int16 {
	x := make([]int16, n)
	for i := range x {
		x[i] = int16((g.next() - 1<<15) * amplitude >> 15)
	}
	return x
}

// inRoom is a recording with a quiet room around it, and a faint noise under it: some recordings have digital silence.
func inRoom(x []int16, before, after int) []int16 {
	g := generator(1)
	y := g.hiss(before+len(x)+after, 20)
	for i, v := range x {
		y[before+i] = int16(min(max(int(v)+int(y[before+i])/4, -1<<15), 1<<15-1))
	}
	return y
}

// synthetic is a sound that compare.py makes as well: noise, a rising triangle wave and steps in loudness, with
// silence and overload in it. It is made of integers alone, so that both are the same.
func synthetic(n int) []int16 {
	x := make([]int16, n)
	var noise, phase, step uint32 = 1, 0, 1 << 23
	for i := range x {
		noise = noise*1664525 + 1013904223
		phase += step
		step += 1 << 10
		wave := int32(phase) >> 16
		wave = max(wave, -wave-1)*2 - 1<<15
		loud := int32(i/2000*5%16) + 1
		v := (int32(noise>>20) - 2048 + wave) * loud / 8
		switch i / 4000 % 8 {
		case 2:
			v = 0
		case 5:
			v *= 3
		}
		x[i] = int16(min(max(v, -1<<15), 1<<15-1))
	}
	return x
}
