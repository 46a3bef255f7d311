package wake

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// goldenFeatures are what pymicro-features makes of synthetic(64000). compare/run.sh --golden writes them.
func goldenFeatures(t *testing.T) (slices []Features) {
	t.Helper()
	f, err := os.Open("testdata/features.golden")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var slice Features
		for i, field := range strings.Fields(s.Text()) {
			n, err := strconv.ParseUint(field, 10, 16)
			if err != nil {
				t.Fatal(err)
			}
			slice[i] = uint16(n)
		}
		slices = append(slices, slice)
	}
	return slices
}

func TestFeaturesAreThePeers(t *testing.T) {
	want := goldenFeatures(t)
	f := NewFrontend(10 * time.Millisecond)
	for _, again := range []string{"", "after Reset, "} {
		sound := synthetic(64000)
		n := 0
		for ; len(sound) > 0; sound = sound[sliceSamples:] {
			var got Features
			if !f.Write(sound[:sliceSamples], &got) {
				continue
			}
			if got != want[n] {
				t.Fatalf("%sslice %d is\n%v, not\n%v", again, n, got, want[n])
			}
			n++
		}
		if n != len(want) {
			t.Errorf("%s%d slices, not %d", again, n, len(want))
		}
		f.Reset()
	}
}

// With a step of 20 ms a slice has the same window as each second one with 10 ms; before noise reduction, which goes
// by slices, they are equal.
func TestStepOfTheFirstVersion(t *testing.T) {
	const slow = 20 * time.Millisecond
	a, b := NewFrontend(sliceStep), NewFrontend(slow)
	sound := synthetic(32000)
	var fa, fb Features
	n := 0
	for ; len(sound) > 0; sound = sound[2*sliceSamples:] {
		a.Write(sound[:sliceSamples], &fa)
		bandsA := a.bands
		a.Write(sound[sliceSamples:2*sliceSamples], &fa)
		if b.Write(sound[:2*sliceSamples], &fb) {
			if n++; b.bands != bandsA {
				t.Fatalf("slice %d differs", n)
			}
		}
	}
	if n != 99 {
		t.Errorf("%d slices, not 99", n)
	}
}

func TestRoot(t *testing.T) {
	for _, tt := range []struct {
		x    uint64
		want uint32
	}{
		{0, 0}, {1, 1}, {2, 1}, {3, 2}, {6, 2}, {7, 3}, {1<<32 - 1, 65535}, {1 << 32, 65536},
		{1<<64 - 1, 1<<32 - 1}, {(1<<31 + 1) * (1<<31 + 1), 1<<31 + 1}, {(1<<31+1)*(1<<31+1) - 1, 1<<31 + 1},
	} {
		if got := root(tt.x); got != tt.want {
			t.Errorf("root(%d) = %d, not %d", tt.x, got, tt.want)
		}
	}
}

func TestSliceDoesNotAllocate(t *testing.T) {
	f := NewFrontend(sliceStep)
	d := newDetector(t, "okay_nabu")
	sound := synthetic(sliceSamples)
	var slice Features
	n := testing.AllocsPerRun(300, func() {
		if f.Write(sound, &slice) {
			d.Write(&slice)
			d.Heard()
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}
