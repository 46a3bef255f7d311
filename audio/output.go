package audio

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// The way of sound to the loudspeaker, in the order of the functions in this file, stream.go and sound.go:
//
//  1. Stream.Write puts speech, or music, into the ring of its stream; Sound puts tones on a plane of their own. Both are
//     called by whoever speaks or rings, at any time.
//  2. Pull is called by the device, every 20 ms, from a thread that must never wait. It takes one frame of speech, one of
//     each sound that is on, and one of music, ducks a ring and music under what is more important, adds up, applies the
//     volume, and saturates.
//  3. Pull wakes who waits: a writer for room, Drain for the end, Started for the beginning. It also keeps count of all
//     that must be measured in sound and not in time: what was played, what was missing, how long ago it ended. Who
//     wants to know what is heard, such as an echo canceller, has it from a Tap.
//
// There are two kinds of fields: those that Pull shares with others are atomics and channels, those that it has to
// itself are plain. The mutex is only between those who start and stop sounds; Pull doesn't touch it.

const (
	speechRoom = 100           // frames: how far the voice may be ahead of the loudspeaker (2 s)
	duckGain   = 0.1           // -20 dB
	duckStep   = 1.0 / 25      // back to full in half a second
	fadeOut    = FrameSize / 2 // 10 ms
	fadeIn     = FrameSize / 4 // 5 ms
	edge       = 256           // a sample that is louder than this (-42 dB) is not jumped to from silence
	soundsRoom = 4             // short sounds waiting for their turn
	volumeSpan = 40.0          // dB from the loudest to the softest
	fullVolume = 100
)

// An Output is what a loudspeaker plays, on three planes that are mixed: one stream of speech, tones, and one stream of
// music. It opens no device; a device calls Pull. All methods but Pull may be called from any goroutine.
type Output struct {
	speech  plane
	music   plane
	latency atomic.Int64 // of the device, in frames

	queue  chan *sound           // short sounds, see Sound for the policy
	loop   atomic.Pointer[sound] // the ring that is on, or nil
	claims atomic.Int32          // who wants rings and music to be ducked
	taps   atomic.Pointer[[]*Tap]

	percent  atomic.Int32
	muted    atomic.Bool
	absent   atomic.Bool // there is no loudspeaker
	sounding atomic.Bool

	pulled, refused atomic.Uint64

	mu    sync.Mutex
	loops []*sound // the rings that are on; the last is heard

	// Pull's own.
	short    *sound // what sounds at the moment
	ringing  *sound
	ringDuck ducker
	tail     int64   // frames until the last sound has left the device
	gain     float32 // volume
	mix      [FrameSize]int32
	frame    Frame
}

// A plane has one stream at a time.
type plane struct {
	current atomic.Pointer[Stream] // what is on, or nil

	played, underruns, gaps atomic.Uint64

	// Pull's own.
	playing *Stream // what was heard in the last frame
	duck    ducker
}

// A ducker is the gain of something that gives way.
type ducker struct{ gain float32 }

// next is the gain at the begin and at the end of the next frame. It goes down within a frame, and comes back slowly.
func (d *ducker) next(ducked bool) (from, to float32) {
	from, to = d.gain, min(d.gain+duckStep, 1)
	if ducked {
		to = duckGain
	}
	d.gain = to
	return from, to
}

// Stats are counts since the start.
type Stats struct {
	Pulled    uint64 // frames that the device has taken: if this stands still, so does the device
	Spoken    uint64 // of them, frames with speech
	Underruns uint64 // of them, frames that came too late: speech had begun, was not finished, and there was none
	Gaps      uint64 // holes of one or more underruns that were followed by more speech: what a user hears as choppy
	Refused   uint64 // short sounds that were not played because too many were waiting

	MusicPlayed    uint64 // frames with music
	MusicUnderruns uint64 // as Underruns and Gaps, of music
	MusicGaps      uint64
}

// Since is what has been counted after before was taken: during a turn, say.
func (s Stats) Since(before Stats) Stats {
	return Stats{
		Pulled:         s.Pulled - before.Pulled,
		Spoken:         s.Spoken - before.Spoken,
		Underruns:      s.Underruns - before.Underruns,
		Gaps:           s.Gaps - before.Gaps,
		Refused:        s.Refused - before.Refused,
		MusicPlayed:    s.MusicPlayed - before.MusicPlayed,
		MusicUnderruns: s.MusicUnderruns - before.MusicUnderruns,
		MusicGaps:      s.MusicGaps - before.MusicGaps,
	}
}

// NewOutput returns an output at full volume for a device with the given latency: the time from Pull to the air.
func NewOutput(latency time.Duration) *Output {
	o := &Output{
		queue:    make(chan *sound, soundsRoom), // full: the newest is refused and counted
		ringDuck: ducker{1},
		gain:     1,
	}
	o.speech.duck, o.music.duck = ducker{1}, ducker{1}
	o.percent.Store(fullVolume)
	o.SetLatency(latency)
	return o
}

// SetLatency tells how long a frame takes from Pull to the air. The device sets it when it is opened.
func (o *Output) SetLatency(d time.Duration) { o.latency.Store(int64(max(Frames(d), 0))) }

// SetVolume sets the volume from 0, which is silence, to 100, at which sound is left as it is. Equal steps are heard as
// equal: the range is 40 dB. The volume glides to its new value within a frame.
func (o *Output) SetVolume(percent int) { o.percent.Store(int32(min(max(percent, 0), fullVolume))) }

// Volume is the volume that was set, whether it is muted or not.
func (o *Output) Volume() int { return int(o.percent.Load()) }

// SetMuted silences the loudspeaker, or restores the volume. What is playing goes on unheard.
func (o *Output) SetMuted(muted bool) { o.muted.Store(muted) }

// Muted reports whether the loudspeaker is silenced.
func (o *Output) Muted() bool { return o.muted.Load() }

// SetAbsent tells that there is no loudspeaker, and somebody else pulls in its place, or that there is one again.
func (o *Output) SetAbsent(absent bool) { o.absent.Store(absent) }

// Audible reports whether what is played can be heard: there is a loudspeaker, it isn't silenced, and the volume isn't 0.
func (o *Output) Audible() bool { return !o.absent.Load() && !o.Muted() && o.Volume() > 0 }

// Duck makes rings and music quieter, for as long as anybody's claim stands: while the user is being listened to, say.
// release ends this claim, once. Speech and short sounds duck rings by themselves, these three duck music, and speech and
// short sounds are never ducked. A volume that is set meanwhile is the one that all come back to.
func (o *Output) Duck() (release func()) {
	o.claims.Add(1)
	return sync.OnceFunc(func() { o.claims.Add(-1) })
}

// Queued is how much speech waits for the device, its latency not included: for so long nothing will be missed if
// nothing more comes.
func (o *Output) Queued() time.Duration {
	if s := o.speech.current.Load(); s != nil && !s.isCut() {
		return time.Duration(s.ring.Len()) * FrameDuration
	}
	return 0
}

// Sounding reports whether the loudspeaker makes, or has just been given, any sound: from the first frame to the last
// plus the latency, holes included. Volume and mute don't count.
func (o *Output) Sounding() bool { return o.sounding.Load() }

// Stats returns the counts. They are taken one by one, not at one instant.
func (o *Output) Stats() Stats {
	return Stats{
		Pulled:         o.pulled.Load(),
		Spoken:         o.speech.played.Load(),
		Underruns:      o.speech.underruns.Load(),
		Gaps:           o.speech.gaps.Load(),
		Refused:        o.refused.Load(),
		MusicPlayed:    o.music.played.Load(),
		MusicUnderruns: o.music.underruns.Load(),
		MusicGaps:      o.music.gaps.Load(),
	}
}

// Pull fills dst with the next 20 ms. It is for the one thread of the device: it never waits, allocates or logs. When
// nothing is to be heard dst is silence, and must be played too, because latency is counted in pulled frames.
func (o *Output) Pull(dst *Frame) {
	o.mix = [FrameSize]int32{}
	if o.tail > 0 {
		o.tail--
	}
	speech := o.pullPlane(&o.speech, false)
	short := o.pullShort()
	claimed := o.claims.Load() > 0
	ring := o.pullRing(speech || short || claimed)
	music := o.pullPlane(&o.music, speech || short || ring || claimed)
	if short || ring {
		o.tail = o.latency.Load()
	}
	o.sounding.Store(speech || short || ring || music || o.tail > 0)
	o.setLevel(dst)
	o.feed(dst)
	o.pulled.Add(1)
}

// pullPlane mixes in the stream of a plane, and reports whether there is one that has begun, does not pause, and has not
// been heard to its end.
func (o *Output) pullPlane(p *plane, ducked bool) (sounds bool) {
	from, to := p.duck.next(ducked)
	s := p.current.Load()
	if was := p.playing; was != nil && (was != s || was.isCut()) {
		was.fade(o, from)
		o.tail = max(o.tail, o.latency.Load()) // what the device has of it is still to be heard
		p.playing = nil
	}
	if s == nil || s.isCut() {
		return false
	}
	p.playing = s
	if ended := s.play(o, from, to); ended {
		p.playing = nil
		p.current.CompareAndSwap(s, nil)
		return false
	}
	return s.begun && !s.resting
}

// setLevel turns the mix into samples at the volume that is set.
func (o *Output) setLevel(dst *Frame) {
	from, to := o.gain, float32(0)
	if p := o.percent.Load(); p > 0 && !o.muted.Load() {
		to = volumeGains[p]
	}
	o.gain = to
	if from == 1 && to == 1 {
		for i, v := range o.mix {
			dst[i] = saturate(v)
		}
		return
	}
	step := (to - from) / FrameSize
	for i, v := range o.mix {
		from += step
		dst[i] = saturate(int32(float32(v) * from))
	}
}

// volumeGains is a table because the device's thread should not compute powers.
var volumeGains = func() (t [fullVolume + 1]float32) {
	for p := 1; p <= fullVolume; p++ {
		t[p] = float32(math.Pow(10, float64(p-fullVolume)/fullVolume*volumeSpan/20))
	}
	return t
}()

// add mixes f in with a gain that goes in a straight line from one value to another.
func (o *Output) add(f *Frame, from, to float32) {
	if from == 1 && to == 1 {
		for i, s := range f {
			o.mix[i] += int32(s)
		}
		return
	}
	step := (to - from) / FrameSize
	for i, s := range f {
		from += step
		o.mix[i] += int32(float32(s) * from)
	}
}

// addFadingIn is add, the beginning of f swelling up.
func (o *Output) addFadingIn(f *Frame, from, to float32) {
	step := (to - from) / FrameSize
	for i, s := range f {
		from += step
		v := float32(s) * from
		if i < fadeIn {
			v = v * float32(i) / fadeIn
		}
		o.mix[i] += int32(v)
	}
}

// addFadingOut mixes in the beginning of f, dying away.
func (o *Output) addFadingOut(f *Frame, gain float32) {
	for i := range fadeOut {
		o.mix[i] += int32(float32(f[i]) * gain * float32(fadeOut-i) / fadeOut)
	}
}

// release lets sound that ends away from zero come to rest, instead of jumping there.
func (o *Output) release(last int16, gain float32) {
	for i := range fadeIn {
		o.mix[i] += int32(float32(last) * gain * float32(fadeIn-1-i) / fadeIn)
	}
}
