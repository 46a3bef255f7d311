package wake

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Each model that is there gives the outputs that pymicro-wakeword gives, to the bit, also after a reset.
func TestOutputsAreThePeers(t *testing.T) {
	golden := goldenOutputs(t)
	features := goldenFeatures(t)
	tested := map[string]bool{}
	for _, dir := range modelDirs() {
		for _, name := range ModelNames([]string{dir}) {
			path := filepath.Join(dir, name+".json")
			data, err := os.ReadFile(strings.TrimSuffix(path, "json") + "tflite")
			if err != nil {
				t.Fatal(err)
			}
			want, ok := golden[fmt.Sprintf("%x", sha256.Sum256(data))]
			if !ok || tested[path] {
				continue
			}
			tested[path] = true
			m, err := LoadModel(path)
			if err != nil {
				t.Fatal(err)
			}
			d, err := NewDetector(m, 0)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				var got []uint8
				for i := range features {
					if d.Write(&features[i]) {
						got = append(got, d.Raw())
					}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-peer +ours):\n%s", path, diff)
				}
				d.Reset()
			}
		}
	}
	if len(tested) == 0 {
		t.Skipf("none of the models of testdata/outputs.golden in %v", modelDirs())
	}
}

// goldenOutputs are the raw outputs for the golden features, by the model's hash.
func goldenOutputs(t *testing.T) map[string][]uint8 {
	t.Helper()
	f, err := os.Open("testdata/outputs.golden")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m := make(map[string][]uint8)
	for s := bufio.NewScanner(f); s.Scan(); {
		fields := strings.Fields(s.Text())
		if m[fields[0]], err = hex.DecodeString(fields[2]); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// detections are the times at which any of the detectors hears its word, two seconds apart at least.
func detections(sound []int16, detectors ...*Detector) (at []time.Duration) {
	front := NewFrontend(sliceStep)
	for _, d := range detectors {
		d.Reset()
	}
	var f Features
	for n := sliceSamples; n <= len(sound); n += sliceSamples {
		if !front.Write(sound[n-sliceSamples:n], &f) {
			continue
		}
		for _, d := range detectors {
			now := time.Duration(n) * time.Second / sampleRate
			if d.Write(&f) && d.Heard() && (len(at) == 0 || now-at[len(at)-1] > 2*time.Second) {
				at = append(at, now)
			}
		}
	}
	return at
}

func TestReferenceRecordings(t *testing.T) {
	want := labels(t)
	for _, path := range recordings(t, "wake/reference_tests") {
		word := want["wake/reference_tests/"+filepath.Base(path)]
		t.Run(filepath.Base(path), func(t *testing.T) {
			sound := inRoom(readFLAC(t, path), 2*sampleRate, sampleRate)
			for _, name := range []string{"okay_nabu", "alexa", "hey_jarvis", "hey_mycroft"} {
				at := detections(sound, newDetector(t, name))
				if name == word && len(at) == 0 {
					t.Errorf("%s wasn't heard", name)
				}
				if name != word && len(at) > 0 {
					t.Errorf("%s was heard at %v", name, at)
				}
			}
		})
	}
}

func TestAlexaRecordings(t *testing.T) {
	d := newDetector(t, "alexa")
	paths := recordings(t, "wake/alexa")
	tried, missed := 0, 0
	for i := 0; i < len(paths); i += every(4) {
		tried++
		if len(detections(inRoom(readFLAC(t, paths[i]), 2*sampleRate, sampleRate), d)) == 0 {
			missed++
			t.Logf("%s: not heard", filepath.Base(paths[i]))
		}
	}
	t.Logf("%d of %d heard", tried-missed, tried)
	if missed > 2 {
		t.Errorf("%d of %d not heard", missed, tried)
	}
}

// Nothing is heard where nobody calls.
func TestNobodyCalls(t *testing.T) {
	detectors := []*Detector{newDetector(t, "okay_nabu"), newDetector(t, "alexa"), newDetector(t, "hey_jarvis")}
	paths := recordings(t, "negative/*", "commands/*", "wake/other")
	var tried, sound int
	for i := 0; i < len(paths); i += every(12) {
		x := inRoom(readFLAC(t, paths[i]), 2*sampleRate, sampleRate)
		if at := detections(x, detectors...); len(at) > 0 {
			t.Errorf("%s: heard a call at %v", paths[i], at)
		}
		tried++
		sound += len(x)
	}
	t.Logf("%d recordings, %v of sound", tried, time.Duration(sound)*time.Second/sampleRate)
}

// every is 1, or n if only some of many recordings are to be tried: in short mode and with the race detector.
func every(n int) int {
	if raceEnabled() || testing.Short() {
		return n
	}
	return 1
}

// raceEnabled tells whether the test was built with the race detector, which makes it ten times as slow.
func raceEnabled() bool {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "-race" {
				return s.Value == "true"
			}
		}
	}
	return false
}

func TestDeafAfterReset(t *testing.T) {
	d := newDetector(t, "alexa")
	word := readFLAC(t, recordings(t, "wake/reference_tests")[0])
	var early bool
	front := NewFrontend(sliceStep)
	var f Features
	for n := 0; n+sliceSamples <= len(word); n += sliceSamples {
		if front.Write(word[n:n+sliceSamples], &f) && d.Write(&f) && d.Heard() && d.slices < deafSlices {
			early = true
		}
	}
	if early {
		t.Error("heard something in the first second")
	}
}
