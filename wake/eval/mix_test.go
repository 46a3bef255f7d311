package eval

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// hiss is noise of that loudness.
func hiss(n, loudness int) []int16 {
	r := rand.New(rand.NewPCG(3, 4))
	out := make([]int16, n)
	for i := range out {
		out[i] = int16(r.IntN(2*loudness+1) - loudness)
	}
	return out
}

// burst is silent but for a tone of 100 ms.
func burst(n, at int) []int16 {
	out := make([]int16, n)
	for i := range 1600 {
		out[at+i] = int16(8000 * math.Sin(float64(i)*0.2))
	}
	return out
}

func TestMixHasTheRatio(t *testing.T) {
	speech := burst(20000, 7000)
	quiet := Quiet(speech)
	from, to := samplesIn(QuietBefore), len(quiet)-samplesIn(QuietAfter)
	for _, snr := range []float64{20, 10, 0, -3} {
		// The noise is loudest before the speech, where it doesn't count.
		noise := slices.Concat(hiss(from, 5000), hiss(len(quiet)-from, 3000))
		mixed := mix(quiet, noise, snr)
		left := make([]int16, len(mixed)) // when the speech is taken away again
		for i := range mixed {
			left[i] = mixed[i] - quiet[i]
		}
		got := 10 * math.Log10(peakEnergy(quiet[from:to])/peakEnergy(left[from:to]))
		if math.Abs(got-snr) > 0.05 {
			t.Errorf("%v dB: the mix has %.2f", snr, got)
		}
		if peakEnergy(left[:from]) < 2*peakEnergy(left[from:to]) {
			t.Errorf("%v dB: the noise before is gone", snr)
		}
	}
}

func TestMixAtTheEdges(t *testing.T) {
	quiet := Quiet(burst(20000, 7000))
	loud := mix(quiet, hiss(len(quiet), 20000), -20)
	if peak := slices.Max(loud); peak < 32000 || slices.Min(loud) < -math.MaxInt16 {
		t.Errorf("a loud mix goes from %d to %d", slices.Min(loud), peak)
	}
	clipped := 0
	for _, v := range loud {
		if v == math.MaxInt16 || v == -math.MaxInt16 {
			clipped++
		}
	}
	if clipped > 2 {
		t.Errorf("%d samples are clipped", clipped)
	}
	noise := make([]int16, len(quiet)) // silent below the recording
	noise[10] = 1000
	if got := mix(quiet, noise, 0); got[10] == quiet[10] {
		t.Error("noise with a pause is lost")
	}
	if got := mix(quiet, make([]int16, len(quiet)), 0); !slices.Equal(got, quiet) {
		t.Error("silent noise changes something")
	}
	if got := noiseGain(make([]int16, 1000), hiss(1000, 10), 10); got != 1 {
		t.Errorf("without speech, noise is multiplied by %v", got)
	}
	if peakEnergy(nil) != 0 || peakEnergy([]int16{3}) != 9 || peakEnergy(make([]int16, 600)) != 0 {
		t.Error("energy of little")
	}
}

func TestStretch(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	got := stretch(r, [][]int16{{1, 2, 3}}, 8)
	for i := range got {
		if i > 0 && got[i] != got[i-1]%3+1 {
			t.Errorf("%v doesn't go round", got)
		}
	}
	if len(got) != 8 {
		t.Errorf("%d samples", len(got))
	}
}

// In a stint of the public benchmark, the call has the ratio to the noise below it, and the truth says where it is.
func TestStint(t *testing.T) {
	snr := 10.0
	s := &stint{
		call: burst(16000, 8000), file: "call", negatives: [][]int16{burst(16000, 100), burst(32000, 20000)},
		noise: [][]int16{hiss(50000, 500)}, before: 5 * 16000, conditions: []condition{{"10 dB", &snr}}, seed: 1, n: 2,
	}
	soundings, err := s.sounds()
	if err != nil || len(soundings) != 1 {
		t.Fatal(err, len(soundings))
	}
	x := soundings[0]
	if x.truth.listened != lengthOf(len(x.sound)) || x.truth.from < 5*time.Second || x.truth.to-x.truth.from != 1500*time.Millisecond {
		t.Errorf("truth: %+v, sound of %v", x.truth, lengthOf(len(x.sound)))
	}
	from := samplesIn(x.truth.from)
	// A frame of the tone, which is where it was in the call, against one of the noise before it.
	speech, noise := peakEnergy(x.sound[from+8000:from+9600]), peakEnergy(x.sound[from:from+8000])
	if got := 10 * math.Log10(speech/noise); math.Abs(got-10.4) > 0.5 { // speech and noise together: 0.4 more
		t.Errorf("%.2f dB", got)
	}
	if peak := slices.Max(x.sound); peak < 32000 {
		t.Errorf("the peak is %d", peak)
	}
}

func TestDetections(t *testing.T) {
	var c Course
	for i, score := range []float64{0.2, 0.6, 0.9, 0.5, 0.6, 0.7} {
		c = append(c, Point{time.Duration(i) * time.Second, score})
	}
	var at []int
	for _, p := range c.Detections(0.5, 3*time.Second) {
		at = append(at, int(p.At/time.Second))
	}
	if !slices.Equal(at, []int{1, 4}) {
		t.Errorf("detections at %v", at)
	}
	if b := c.Best(); b.Score != 0.9 || b.At != 2*time.Second {
		t.Errorf("best: %v", b)
	}
}
