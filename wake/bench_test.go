package wake

import (
	"testing"
	"time"
)

// BenchmarkStep is one step of 30 ms: three slices of features and a run of each network.
func BenchmarkStep(b *testing.B) {
	for _, bb := range []struct {
		name  string
		words []string
	}{
		{"features", nil},
		{"1model", []string{"okay_nabu"}},
		{"3models", []string{"okay_nabu", "alexa", "hey_jarvis"}},
		{"3models_vad", []string{"okay_nabu", "alexa", "hey_jarvis", "vad"}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			var detectors []*Detector
			for _, w := range bb.words {
				detectors = append(detectors, newDetector(b, w))
			}
			front := NewFrontend(sliceStep)
			sound := synthetic(1600)
			var f Features
			at := 0
			b.ReportAllocs()
			for b.Loop() {
				for range 3 {
					if front.Write(sound[at:at+sliceSamples], &f) {
						for _, d := range detectors {
							d.Write(&f)
						}
					}
					at = (at + sliceSamples) % len(sound)
				}
			}
			perStep := b.Elapsed() / time.Duration(b.N)
			b.ReportMetric(float64(30*time.Millisecond)/float64(perStep), "x-realtime")
			b.ReportMetric(100*float64(perStep)/float64(30*time.Millisecond), "%core")
		})
	}
}
