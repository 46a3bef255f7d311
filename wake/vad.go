package wake

import "bellbird/audio"

// The voice activity detector tells for every 10 ms whether somebody speaks, in a room that it knows nothing about.
// From the frontend's bands, before their noise is reduced, to the decision:
//
//  1. loudness of five wide bands, smoothed over 30 ms
//  2. the floor of each: the least loudness of the last one to two seconds. It sinks at once and rises slowly, so that
//     speech, which always has gaps, hardly lifts it; unless the loudness stands still, as speech never does, but a
//     tap that was turned on
//  3. how far the best three bands are above their floors: a clatter at 6 kHz alone is no voice, nor is a hum
//  4. a voice begins above one threshold and ends below a lower one, or far below the loudest of late, so that
//     reverberation doesn't count
//  5. for each frame: a voice without a vowel, that is without anything periodic (pitch.go), is none for long
//  6. if there is the model "vad", it has a say: what it is sure of may be a single band, as the s at the end of a word
//     is, and what it doubts must have a vowel
//
// The model alone would not do: it goes on for about half a second after the last word.
//
// It decides about sound, not about words: music and a barking dog are speech to it. Whispering isn't.

// Loudness is logarithmic, in units of the features: 64 to a neper, about 7 to a decibel.
const decibels = 7

const (
	wideBands  = 5
	bestBands  = 3
	smoothing  = 3  // slices
	floorParts = 4  // of the time that the floor is the least loudness of
	floorPart  = 40 // slices in each part

	floorRise  = 3             // tenths of a unit a slice that the floor rises in speech: about 4 dB a second
	stillRange = 7 * decibels  // a band that varies less in half a second isn't speech
	mostAbove  = 24 * decibels // what a single band may contribute
	speechOn   = 3 * 11 * decibels
	speechOff  = 3 * 7 * decibels
	masked     = 40 * decibels // so far below the loudest band the transform's rounding hides what there is
	reverb     = 32 * decibels // so far below the loudest is no speech
)

// wideEdges are the frontend's channels where the wide bands begin: at 125, 400, 800, 1600 and 3200 Hz.
var wideEdges = [wideBands + 1]int{0, 5, 10, 17, 27, Channels}

// A sound is what a frame is taken for.
type sound uint8

const (
	quiet     sound = iota
	consonant       // speech, whatever it is
	vowel           // surely speech
)

const (
	vowelPitch   = 0.75 // how periodic a vowel is
	vowelLeast   = 0.6  // how periodic a weak one is, at the end of a sentence
	vowelReaches = 30   // frames for which a vowel makes what comes after it speech
)

type voice struct {
	bands    [wideBands]wideBand
	slices   int   // in the newest part
	began    bool  // a first slice was heard
	loudest  int32 // of late, of the bands' sum
	speaking bool
	best     int32 // how far the best band is above its floor

	pitch      pitch
	sinceVowel int // frames
}

// An opinion is what the model "vad" thinks of late.
type opinion uint8

const (
	none   opinion = iota // neither this nor that, or there is no model
	sure                  // somebody speaks
	doubts                // whether anybody does
	denies                // nobody has spoken for a while
)

const (
	soundOn     = 12 * decibels // the best band above its floor: there is some sound, and if the model is sure, a voice
	doubtsAfter = 5             // frames without a vowel after which the model is believed if it doubts
)

// frame decides about a frame; speaking tells whether one of its slices was a voice.
func (v *voice) frame(f *audio.Frame, speaking bool, model opinion) sound {
	periodic := v.pitch.write(f) // always, to keep up
	v.sinceVowel++
	switch {
	case model == denies:
		return quiet
	case model == sure && !speaking && v.best > soundOn:
		return consonant
	case !speaking:
		return quiet
	case periodic >= vowelPitch:
		v.sinceVowel = 0
		return vowel
	case periodic >= vowelLeast:
		v.sinceVowel = 0
		return consonant
	case model == doubts && v.sinceVowel > doubtsAfter:
		return quiet
	case v.sinceVowel <= vowelReaches || model == sure && v.best > soundOn:
		return consonant
	}
	return quiet
}

type wideBand struct {
	recent [smoothing]int32
	least  [floorParts]int32
	most   [floorParts]int32
	floor  int32 // in tenths of a unit
}

// write takes the next slice's bands and returns whether it is speech.
func (v *voice) write(bands *[Channels]uint32, log func(uint32) uint16) bool {
	if !v.began {
		v.begin(bands, log)
	}
	next := v.slices == floorPart
	if v.slices++; next {
		v.slices = 1
	}
	var raw [wideBands]int32
	var loudest int32
	for i := range raw {
		raw[i] = loudness(bands, i, log)
		loudest = max(loudest, raw[i])
	}
	var above [wideBands]int32
	var sum int32
	for i := range v.bands {
		b := &v.bands[i]
		copy(b.recent[1:], b.recent[:])
		if raw[i] > loudest-masked {
			b.recent[0] = raw[i]
		}
		var now int32
		for _, x := range b.recent {
			now += x
		}
		now /= smoothing
		b.follow(now, next)
		above[i] = min(max(now-b.floor/10, 0), mostAbove)
		sum += now
	}
	v.decide(&above, sum)
	return v.speaking
}

// begin takes the first slice for the background.
func (v *voice) begin(bands *[Channels]uint32, log func(uint32) uint16) {
	v.began = true
	for i := range v.bands {
		b := &v.bands[i]
		now := loudness(bands, i, log)
		for k := range b.recent {
			b.recent[k] = now
		}
		for k := range b.least {
			b.least[k], b.most[k] = now, now
		}
		b.floor = 10 * now
	}
}

func loudness(bands *[Channels]uint32, i int, log func(uint32) uint16) int32 {
	var sum uint32
	for _, x := range bands[wideEdges[i]:wideEdges[i+1]] {
		sum += x
	}
	return int32(log(sum))
}

// follow moves the floor. next begins a new part of the time that is looked back on.
func (b *wideBand) follow(now int32, next bool) {
	if next {
		copy(b.least[1:], b.least[:])
		copy(b.most[1:], b.most[:])
		b.least[0], b.most[0] = now, now
	}
	b.least[0], b.most[0] = min(b.least[0], now), max(b.most[0], now)
	least := 10 * min(b.least[0], b.least[1], b.least[2], b.least[3])
	if max(b.most[0], b.most[1])-min(b.least[0], b.least[1]) < stillRange {
		least = 10 * min(b.least[0], b.least[1])
		b.floor = max(b.floor, least)
	}
	b.floor = min(least, b.floor+floorRise)
}

// decide sorts the bands' distances from their floors, and compares the best with the thresholds.
func (v *voice) decide(above *[wideBands]int32, sum int32) {
	for i := range above {
		for k := i; k > 0 && above[k] > above[k-1]; k-- {
			above[k], above[k-1] = above[k-1], above[k]
		}
	}
	var best int32
	for _, x := range above[:bestBands] {
		best += x
	}
	v.best = above[0]
	switch {
	case best > speechOn:
		v.speaking = true
	case best < speechOff:
		v.speaking = false
	}
	if v.loudest = max(v.loudest-1, sum); v.speaking && sum < v.loudest-wideBands*reverb {
		v.speaking = false
	}
}
