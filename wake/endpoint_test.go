package wake

import (
	"cmp"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"bellbird/audio"
)

// The endpoint is measured on recorded people, clean and in noise. For each utterance: the end of speech is where its
// level, over 30 ms, was last above a threshold: 32 dB below its loudest, but at least 10 dB above its own background,
// which is the 5th percentile of its levels. A recording whose last 30 ms are above that ends with them. An utterance is
// cut if the endpoint came more than 50 ms before that; for the others, how long after it counts.
const (
	endBelowPeak  = 32.0
	endAboveQuiet = 10.0
	cutTolerance  = 50 * time.Millisecond
)

// endOfSpeech is the time in a clean recording at which the speech ends.
func endOfSpeech(x []int16) time.Duration {
	const hop, span = sampleRate / 100, 3 * sampleRate / 100
	var levels []float64
	for at := 0; at+span <= len(x); at += hop {
		levels = append(levels, audio.Measure(x[at:at+span]).RMS)
	}
	sorted := slices.Sorted(slices.Values(levels))
	threshold := max(sorted[len(sorted)-1]-endBelowPeak, sorted[len(sorted)/20]+endAboveQuiet)
	for i, l := range slices.Backward(levels) {
		if l > threshold {
			return time.Duration(i*hop+span) * time.Second / sampleRate
		}
	}
	return 0
}

// inPlace puts a recording into the place where it was made: before and after it goes on as in its quietest moments, of
// which grains are laid over each other. It gets a faint noise as well, for recordings with digital silence.
func inPlace(x []int16, before, after time.Duration) []int16 {
	const grain = sampleRate / 25
	var starts []int
	for at := 0; at+grain <= len(x); at += grain / 4 {
		starts = append(starts, at)
	}
	level := func(at int) float64 { return audio.Measure(x[at : at+grain]).RMS }
	slices.SortFunc(starts, func(a, b int) int { return cmp.Compare(level(a), level(b)) })
	starts = starts[:min(len(starts), len(starts)/50+5)]
	g := generator(9)
	fill := func(d time.Duration) []int16 {
		y := make([]int16, int(d*sampleRate/time.Second))
		for at := 0; at+grain <= len(y); at += grain / 2 {
			from := starts[g.next()%len(starts)]
			for i, v := range x[from : from+grain] {
				y[at+i] += int16(float64(v) * math.Sin(math.Pi*float64(i)/grain)) // equal power
			}
		}
		return y
	}
	return inRoom(slices.Concat(fill(before), x, fill(after)), 0, 0)
}

// inNoise adds noise, in a loop from the given sample on, so that the loudest 20 ms of speech are db above its loudest.
func inNoise(x, noise []int16, from int, db float64) []int16 {
	peak := func(x []int16) (p float64) {
		p = audio.Silence
		for ; len(x) >= audio.FrameSize; x = x[audio.FrameSize:] {
			p = max(p, audio.Measure(x[:audio.FrameSize]).RMS)
		}
		return p
	}
	gain := math.Pow(10, (peak(x)-db-peak(noise))/20)
	y := make([]int16, len(x))
	for i, v := range x {
		s := float64(v) + gain*float64(noise[(from+i)%len(noise)])
		y[i] = int16(min(max(s, math.MinInt16), math.MaxInt16))
	}
	return y
}

const (
	utteranceLead = time.Second
	utteranceTail = 3 * time.Second
)

// endpointOf is when the endpoint of a sound is found that begins with a second of background.
func endpointOf(t *testing.T, x []int16, o Options, second bool) (at time.Duration, voiced bool) {
	e, err := newEars(o)
	if err == nil && second {
		e.o.ModelDirs = modelDirs()
		err = e.secondOpinion()
	}
	if err != nil {
		t.Fatal(err)
	}
	l := &listener{
		queue: make(chan queued, len(x)/audio.FrameSize+1), left: make(chan struct{}),
		endpoint: e.newEndpoint(0),
	}
	l.endpoint.most, l.endpoint.noSpeech = 1e6, 1e6
	all := frames(x)
	for i := range all {
		if i == audio.Frames(utteranceLead) {
			l.from = uint64(i)
			e.listen(l)
		}
		e.hear(&all[i], all[i])
		if i > audio.Frames(utteranceLead) && e.listener == nil {
			return time.Duration(i+1) * audio.FrameDuration, l.voiced
		}
	}
	return time.Duration(len(all)) * audio.FrameDuration, l.endpoint.voiced
}

// A row of the endpoint table.
type endpointRow struct {
	utterances, cut, unheard int
	late                     []time.Duration
}

func (r *endpointRow) add(end, at time.Duration, voiced bool) {
	r.utterances++
	switch {
	case !voiced:
		r.unheard++
	case at < end-cutTolerance:
		r.cut++
	default:
		r.late = append(r.late, at-end)
	}
}

func (r *endpointRow) percentile(p int) time.Duration {
	if len(r.late) == 0 {
		return 0
	}
	slices.Sort(r.late)
	return r.late[(len(r.late)-1)*p/100]
}

// measureEndpoints makes a row of recordings, each in the next of the noises.
func measureEndpoints(t *testing.T, o Options, second bool, noises [][]int16, folders ...string) (r endpointRow) {
	for k, path := range recordings(t, folders...) {
		if k%6 != 0 && os.Getenv("BELLBIRD_MEASURE") == "" {
			continue
		}
		x := readFLAC(t, path)
		end := utteranceLead + endOfSpeech(x)
		x = inPlace(x, utteranceLead, utteranceTail)
		if len(noises) > 0 {
			x = inNoise(x, noises[k%len(noises)], k*7919, 10)
		}
		at, voiced := endpointOf(t, x, o, second)
		r.add(end, at, voiced)
	}
	return r
}

// TestEndpointTable prints the table, of some of the recordings or, with BELLBIRD_MEASURE=1, of all, with limits safely
// beyond what was measured. Cuts are what nobody may do without a
// recogniser's advice: read sentences have pauses of more than a second, and no silence is longer than those and short
// enough for the end. In noise it is also that the last sounds of a sentence are not heard any more.
func TestEndpointTable(t *testing.T) {
	commands, reading := []string{"commands/coffee", "commands/home"}, []string{"negative/librispeech_test_other"}
	var noises [][]int16
	for _, path := range recordings(t, "noise") {
		noises = append(noises, readFLAC(t, path))
	}
	for _, tt := range []struct {
		name        string
		folders     []string
		noises      [][]int16
		second      bool
		cut         int
		median, p95 time.Duration
	}{
		{"commands", commands, nil, false, 0, 560 * time.Millisecond, 700 * time.Millisecond},
		{"commands, 10 dB", commands, noises, false, 2, 800 * time.Millisecond, 2500 * time.Millisecond},
		{"reading", reading, nil, false, 8, 650 * time.Millisecond, 2500 * time.Millisecond},
		{"reading, 10 dB", reading, noises, false, 20, 650 * time.Millisecond, 2500 * time.Millisecond},
		{"commands, model vad", commands, nil, true, 0, 620 * time.Millisecond, 800 * time.Millisecond},
		{"commands, 10 dB, model vad", commands, noises, true, 2, 800 * time.Millisecond, 2500 * time.Millisecond},
		{"reading, model vad", reading, nil, true, 5, 700 * time.Millisecond, 2500 * time.Millisecond},
		{"reading, 10 dB, model vad", reading, noises, true, 18, 650 * time.Millisecond, 2500 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.second {
				newDetector(t, "vad") // skips
			}
			t.Parallel()
			r := measureEndpoints(t, Options{}, tt.second, tt.noises, tt.folders...)
			median, p95 := r.percentile(50), r.percentile(95)
			t.Logf("%-28s %d utterances, %2d cut, %d unheard, endpoint after %v median, %v p95, %v at most",
				tt.name, r.utterances, r.cut, r.unheard, median, p95, r.percentile(100))
			if r.cut > tt.cut || median > tt.median || p95 > tt.p95 || r.unheard > 1 {
				t.Errorf("want at most %d cut, %v median, %v p95, 1 unheard", tt.cut, tt.median, tt.p95)
			}
		})
	}
}
