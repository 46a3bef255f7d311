package wake

import (
	"time"

	"bellbird/audio"
)

// A Fault is what is wrong with a microphone.
type Fault string

// The faults.
const (
	Well     Fault = ""
	NoFrames Fault = "no_frames" // it delivers nothing
	Constant Fault = "constant"  // it delivers the same value all the time, as no air does: muted, or its wire is off
)

// deafAfter is for how long that must go on.
const deafAfter = 2 * time.Second

// lookAfter is how often it is looked after frames. A fault is found at most so much later.
const lookAfter = deafAfter / 4

// A microphone is watched for what makes it deaf. It belongs to Run's goroutine.
type microphone struct {
	fault Fault
	seen  uint64 // frames, when it was last looked
	idle  int    // looks without a new one
	value int16  // of the last sample
	still int    // frames that had no other
}

// look finds out whether frames have come since the last look.
func (m *microphone) look(frames uint64) (changed bool) {
	m.idle++
	if frames != m.seen {
		m.seen, m.idle = frames, 0
	}
	if m.idle < int(deafAfter/lookAfter) {
		return false
	}
	m.still = 0 // what was before is nothing to go by
	return m.become(NoFrames)
}

// hear finds out whether a frame is sound.
func (m *microphone) hear(f *audio.Frame) (changed bool) {
	m.still++
	for _, s := range f {
		if s != m.value {
			m.value, m.still = f[len(f)-1], 0
			return m.become(Well)
		}
	}
	if m.still >= audio.Frames(deafAfter) {
		return m.become(Constant)
	}
	return false // not known to be well, not known to be deaf
}

func (m *microphone) become(f Fault) (changed bool) {
	changed = m.fault != f
	m.fault = f
	return changed
}

// A look is a request to look after the microphone. done ends the work of it.
type look struct{ done func() }

// watch asks Run to look after the microphone every now and then, until stop is called.
func (e *Ears) watch() (stop func()) {
	over := make(chan struct{})
	var next func()
	next = func() {
		e.o.AfterFunc(lookAfter, func() {
			l := look{e.o.Work()}
			select {
			case e.looks <- l: // waits for Run, which never does for long
				next()
			case <-over:
				l.done()
			}
		})
	}
	next()
	return func() { close(over) }
}

// tellMicrophone tells what became of the microphone.
func (e *Ears) tellMicrophone() {
	if f := e.microphone.fault; f != Well {
		e.o.Logger.Warn("the microphone is deaf", "reason", string(f))
	} else {
		e.o.Logger.Info("the microphone is well again")
	}
	e.o.OnMicrophone(e.microphone.fault)
}
