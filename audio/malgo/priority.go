package malgo

import (
	"runtime"
	"sync/atomic"
)

// Two things keep a callback waiting while the program computes: that its thread isn't given a core, which is for the
// kernel to mend, and that it isn't given one of the places that Go has for threads that run Go. There are as many as
// cores, and who has one may keep it for 10 ms, or for much longer if its own thread isn't given a core.

// spare is how many more places than cores there are: one for the callbacks, which are short, and one for those to whom
// they hand over. TestNoGlitches tells what it is worth.
const spare = 2

// reserve adds them, until release is called.
func reserve() (release func()) {
	before := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(before + spare)
	return func() { runtime.GOMAXPROCS(before) }
}

// A priority is that of the thread which calls back for a device. That thread is the library's, and asks for more
// itself, in its first call: nobody else can know when it is there. Where it may not have more nothing changes.
type priority struct {
	asked  bool                   // the thread's own
	answer atomic.Pointer[answer] // once it has asked, until somebody has looked
}

// An answer says what came of asking. It is logged by who looks after the device, for a callback doesn't log.
type answer struct{ err error }

// raise is called by the thread in each call, and asks in the first.
func (p *priority) raise() {
	if !p.asked {
		p.asked = true
		p.answer.Store(&answer{runFirst()})
	}
}

// news is what came of asking, once, when it is known.
func (p *priority) news() *answer { return p.answer.Swap(nil) }
