package tflite_test

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bellbird/wake/tflite"
)

// models are the files of the models that are there; it skips if there are none. Whether they compute what they should
// is tested in package wake, with features.
func models(t testing.TB) (paths []string) {
	t.Helper()
	for _, dir := range []string{"../../models", "../../../shared/data/models/microwakeword"} {
		p, err := filepath.Glob(filepath.Join(dir, "*.tflite"))
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, p...)
	}
	if len(paths) == 0 {
		t.Skip("no models: run \"make models\"")
	}
	return paths
}

// steps runs n steps with made-up input and returns the outputs.
func steps(in *tflite.Interpreter, n int) (out []uint8) {
	noise := uint32(1)
	for range n {
		x := in.Input()
		for i := range x {
			noise = noise*1664525 + 1013904223
			x[i] = int8(noise >> 24)
		}
		in.Invoke()
		out = append(out, in.Output()...)
	}
	return out
}

func interpreter(t testing.TB, path string) *tflite.Interpreter {
	t.Helper()
	m, err := tflite.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	in, err := m.NewInterpreter()
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return in
}

func TestStepsAreRepeatable(t *testing.T) {
	for _, path := range models(t) {
		in := interpreter(t, path)
		first := steps(in, 50)
		in.Reset()
		if again := steps(in, 50); !slices.Equal(first, again) {
			t.Errorf("%s: after Reset the outputs are\n%v, not\n%v", path, again, first)
		}
		if other := steps(interpreter(t, path), 50); !slices.Equal(first, other) {
			t.Errorf("%s: another interpreter gives\n%v, not\n%v", path, other, first)
		}
	}
}

func TestStepDoesNotAllocate(t *testing.T) {
	for _, path := range models(t) {
		in := interpreter(t, path)
		if n := testing.AllocsPerRun(100, in.Invoke); n != 0 {
			t.Errorf("%s: %v allocations", path, n)
		}
	}
}

func TestInterpretersShareAModel(t *testing.T) {
	path := models(t)[0]
	m, err := tflite.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	want := steps(interpreter(t, path), 20)
	got := make(chan []uint8)
	for range 4 {
		go func() {
			in, err := m.NewInterpreter()
			if err != nil {
				t.Error(err)
				got <- nil
				return
			}
			got <- steps(in, 20)
		}()
	}
	for range 4 {
		if g := <-got; !slices.Equal(g, want) {
			t.Errorf("outputs %v, not %v", g, want)
		}
	}
}

func TestBrokenFiles(t *testing.T) {
	path := models(t)[0]
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(data); n += 997 {
		if _, err := tflite.Parse(data[:n]); err == nil {
			t.Errorf("%d of %d bytes were accepted", n, len(data))
		}
	}
	half := filepath.Join(t.TempDir(), "half.tflite")
	if err := os.WriteFile(half, data[:len(data)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := tflite.Load(half); err == nil || !strings.HasPrefix(err.Error(), `model "half.tflite": truncated at byte `) {
		t.Errorf("error %q", err)
	}
	if _, err := tflite.Load(half + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

// A model with single bytes or numbers changed is refused or runs; it doesn't panic, hang or use up the memory.
func TestDamagedFiles(t *testing.T) {
	data, err := os.ReadFile(models(t)[0])
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	accepted := 0
	for range 1000 {
		broken := slices.Clone(data)
		for range 1 + rnd.IntN(3) {
			// Half of the damage goes to the last third, where the lists of tensors and operators are.
			at := rnd.IntN(len(data) - 4)
			if rnd.IntN(2) == 0 {
				at = len(data) - 4 - rnd.IntN(len(data)/3)
			}
			switch rnd.IntN(3) {
			case 0:
				broken[at] ^= 1 << rnd.IntN(8)
			case 1:
				broken[at] = byte(rnd.IntN(256))
			default:
				binary.LittleEndian.PutUint32(broken[at:], rnd.Uint32()>>rnd.IntN(32))
			}
		}
		m, err := tflite.Parse(broken)
		if err != nil {
			continue
		}
		if in, err := m.NewInterpreter(); err == nil {
			in.Invoke()
			accepted++
		}
	}
	t.Logf("%d of 1000 were accepted", accepted)
}
