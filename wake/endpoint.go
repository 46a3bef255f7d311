package wake

// An endpoint finds the end of an utterance in a row of frames that are speech or quiet.
type endpoint struct {
	silence  int // frames without speech that end the utterance
	noSpeech int // frames to wait for speech
	most     int // frames of an utterance

	// tail is how many frames at the beginning may be the rest of the wake word. They don't count as speech unless
	// there was a gap before.
	tail int

	hint hinted

	frames int
	quiet  int // frames without speech, up to now
	spoken int // frames with speech that count, since the last long gap
	vowels int // frames with a vowel since then, that of a wake word's rest included
	gap    bool
	voiced bool
	began  int // of the frames, the first with speech that counts, since the last long gap
}

const (
	gapFrames   = 4  // a gap that is longer than those within a word
	longGap     = 12 // after which a short sound is forgotten
	leastSpoken = 12 // frames: a word is longer; a knock and the wake tone are shorter
	leastJoined = 6  // frames of speech that go on after the wake word: "stop" is over then
	leastVowels = 2  // frames of either
	onset       = 15 // frames before speech was noticed in which it may have begun: a soft consonant
)

// first is how many frames at the beginning are not worth recognising: what was quiet before somebody spoke. A recogniser
// measures the room by what it is given, and takes its noises for speech. What follows a wake word in the same breath is
// recognised from the beginning.
func (e *endpoint) first() int {
	if !e.gap {
		return 0
	}
	return max(e.began-onset, 0)
}

// frame takes the next frame and reports whether the utterance is over.
func (e *endpoint) frame(s sound) (over bool) {
	e.frames++
	if s != quiet {
		e.quiet = 0
		if e.gap || e.frames > e.tail {
			if e.spoken == 0 {
				e.began = e.frames - 1
			}
			e.spoken++
		}
		if s == vowel {
			e.vowels++
		}
		least := leastSpoken
		if !e.gap && e.tail > 0 {
			least = leastJoined
		}
		e.voiced = e.voiced || e.spoken >= least && e.vowels >= leastVowels
	} else {
		e.quiet++
		e.gap = e.gap || e.quiet >= gapFrames
		if e.quiet >= longGap {
			e.spoken, e.vowels = 0, 0
		}
	}
	switch {
	case e.frames >= e.most:
		return true
	case e.voiced:
		return e.quiet >= e.needed()
	default:
		return e.frames >= e.noSpeech && e.spoken == 0
	}
}
