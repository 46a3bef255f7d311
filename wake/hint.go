package wake

// How long it must be quiet depends on what was said: after a whole sentence the end is nearer than in the middle of
// one. The ears don't understand, so they ask, and do without an answer:
//
//  1. in a pause they call OnPause
//  2. whoever understands calls Hint, when he knows, about what he had heard by then
//  3. the endpoint is moved, unless somebody has spoken since

// A Hint tells what an utterance is so far.
type Hint uint8

// The hints.
const (
	Unknown  Hint = iota
	Complete      // a whole sentence, though there may be more to come
	Begun         // the beginning of a sentence: "set a timer for"
)

const (
	// pauseFrames is how long it must be quiet to be called a pause. Gaps within words are shorter.
	pauseFrames = 6

	// The silence that ends an utterance is as in Options, or so many tenths of it.
	completeTenths = 6
	begunTenths    = 20
)

// A hinted is a Hint about the first frames of an utterance.
type hinted struct {
	Hint
	frames int
}

// Hint tells what the utterance that is being listened to was after that many of its frames. It may be called at any
// time from any goroutine, and doesn't wait: when the ears can't follow, which takes a dozen of them, it is dropped.
func (e *Ears) Hint(frames int, h Hint) {
	select {
	case e.hints <- hinted{h, frames}:
	default:
	}
}

// needed is how many frames of quiet end the utterance.
func (e *endpoint) needed() int {
	if e.hint.frames <= e.frames-e.quiet {
		return e.silence // there was none, or somebody has spoken since
	}
	switch e.hint.Hint {
	case Complete:
		return e.silence * completeTenths / 10
	case Begun:
		return e.silence * begunTenths / 10
	}
	return e.silence
}
