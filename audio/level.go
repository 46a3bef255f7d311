package audio

import "math"

// Silence is the level given to digital silence, whose true level in decibels would be minus infinity.
const Silence = -120.0

// A Level says how loud a piece of sound is, in dB relative to full scale: 0 is a square wave as loud as 16 bits allow,
// a full sine has an RMS of -3. Neither is below Silence.
type Level struct {
	RMS  float64
	Peak float64
}

// Measure is the level of samples.
func Measure(samples []int16) Level {
	var sum, peak int64
	for _, s := range samples {
		v := int64(s)
		sum += v * v
		peak = max(peak, v, -v)
	}
	if peak == 0 {
		return Level{RMS: Silence, Peak: Silence}
	}
	mean := float64(sum) / float64(len(samples))
	return Level{RMS: max(Silence, decibels(math.Sqrt(mean))), Peak: decibels(float64(peak))}
}

func decibels(amplitude float64) float64 { return 20 * math.Log10(amplitude/32768) }

// saturate brings v into the range of a sample. Sound that is too loud is clipped, which is heard as distortion; without
// this it would wrap around, which is heard as a bang.
func saturate(v int32) int16 {
	return int16(min(max(v, math.MinInt16), math.MaxInt16))
}
