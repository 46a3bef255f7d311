// Package audiotest has a virtual device for tests and for the demo: a room with a microphone and a loudspeaker, in which
// users can be made to speak. It runs in real time or on a virtual clock, as fast as the appliance can follow. It opens
// no sound card.
package audiotest

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"bellbird/audio"
	"bellbird/clock"
)

// What happens every 20 ms, in the order of the functions below:
//
//  1. The loudspeaker pulls a frame from the Output, like a sound card.
//  2. listen makes up the next frame of the room: what users say, and noise.
//  3. leak adds what the microphone hears of the loudspeaker.
//  4. Both frames are recorded.
//  5. The microphone's frame is handed to the appliance: without waiting, as a sound card does, or waiting until it is
//     taken, so that a virtual clock cannot run ahead of who listens.

// RoomOptions are the properties of a Room. Only Output is needed.
type RoomOptions struct {
	// Output is what the loudspeaker plays.
	Output *audio.Output

	// Noise is the level of the background, in dBFS RMS; 0 is -65. It is the same in each run. audio.Silence turns
	// it off.
	Noise float64

	// Leak is how much of the loudspeaker the microphone hears: the gain, 0 to 1, and how long it takes, which is 40
	// ms if it is 0.
	Leak      float64
	LeakDelay time.Duration

	// Response is how the room answers a click of the loudspeaker, as the microphone hears it: the weight of each sample
	// from the first that arrives, which is after LeakDelay. It is scaled by Leak. Empty is one click, without a room.
	// Reverb makes one. It costs time: each frame is worked out with all of it.
	Response []float64

	// Record, if set, is given each frame that the microphone heard and the one that the loudspeaker played at the
	// same time. It is called by one goroutine, which waits for it.
	Record func(room, speaker audio.Frame)

	// Script, if set, is called before each frame with its number, by the goroutine that runs the room. It may call
	// Say and anything else that doesn't wait for the room.
	Script func(r *Room, frame int)
}

// A Room is the virtual device. One of Run and RunVirtual may be called, once. The other methods may be called from any
// goroutine, at any time.
type Room struct {
	opt     RoomOptions
	frames  chan audio.Frame // RunVirtual waits; Run has a queue before it
	dropped atomic.Uint64
	heard   atomic.Uint64

	mu   sync.Mutex
	said []int32 // what is still to be heard, from now on; users may speak at once

	// Of the goroutine that runs.
	noise   *rand.Rand
	delayed []audio.Frame // ring of what the loudspeaker played
	arrived []float64     // of it, the last samples that the response still needs, and the frame that is arriving
	count   int
}

// deviceQueue is how many frames the real-time room holds for a listener that is late, like a sound card's buffer.
const deviceQueue = 50

// NewRoom returns a quiet room.
func NewRoom(o RoomOptions) *Room {
	if o.Noise == 0 {
		o.Noise = -65
	}
	if o.LeakDelay == 0 {
		o.LeakDelay = 40 * time.Millisecond
	}
	return &Room{
		opt:     o,
		frames:  make(chan audio.Frame),
		noise:   rand.New(rand.NewPCG(1, 2)),
		delayed: make([]audio.Frame, audio.Frames(o.LeakDelay)+1),
	}
}

// Frames is what the microphone hears. It is closed when the room has stopped.
func (r *Room) Frames() <-chan audio.Frame { return r.frames }

// Dropped is the number of frames lost because nobody took them in time. On a virtual clock there are none.
func (r *Room) Dropped() uint64 { return r.dropped.Load() }

// Heard is the number of frames that the microphone has made, dropped ones included: the room's time.
func (r *Room) Heard() int { return int(r.heard.Load()) }

// Say lets somebody speak in the room from the next frame on, together with whoever speaks already. It does not wait,
// and returns the number of frames that this takes.
func (r *Room) Say(samples []int16) (frames int) { return r.SayAfter(0, samples) }

// SayAfter is Say, after d of the room's time.
func (r *Room) SayAfter(d time.Duration, samples []int16) (frames int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := int(d * time.Duration(audio.SampleRate) / time.Second)
	end := at + len(samples)
	if len(r.said) < end {
		r.said = append(r.said, make([]int32, end-len(r.said))...)
	}
	for i, s := range samples {
		r.said[at+i] += int32(s)
	}
	return (end + audio.FrameSize - 1) / audio.FrameSize
}

// Quiet reports whether everything that was said has been heard.
func (r *Room) Quiet() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.said) == 0
}

// Run runs the room in real time until ctx is done. Like a sound card it waits for nobody: a listener that is more than
// a second late loses the newest frames. After a pause of the machine it catches up.
func (r *Room) Run(ctx context.Context) error {
	defer close(r.frames)
	queue := make(chan audio.Frame, deviceQueue) // full: the newest frame is dropped and counted
	handed := make(chan struct{})
	go func() {
		defer close(handed)
		for f := range queue {
			if !r.hand(ctx, f) {
				return
			}
		}
	}()
	defer func() { close(queue); <-handed }()

	tick := time.NewTicker(audio.FrameDuration)
	defer tick.Stop()
	start := time.Now()
	for done := 0; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for ; done < int(time.Since(start)/audio.FrameDuration) && ctx.Err() == nil; done++ {
			f := r.step()
			select {
			case queue <- f:
			default:
				r.dropped.Add(1)
			}
		}
	}
}

// RunVirtual runs the room on v until ctx is done, as fast as the listener takes the frames. Each frame moves v by its
// length, and v in turn waits for what works.
func (r *Room) RunVirtual(ctx context.Context, v *clock.Virtual) error {
	defer close(r.frames)
	for ctx.Err() == nil {
		v.Advance(audio.FrameDuration)
		if !r.hand(ctx, r.step()) {
			break
		}
	}
	return nil
}

func (r *Room) hand(ctx context.Context, f audio.Frame) bool {
	select {
	case r.frames <- f:
		return true
	case <-ctx.Done():
		return false
	}
}

// step makes one frame pass, and returns what the microphone heard.
func (r *Room) step() audio.Frame {
	if r.opt.Script != nil {
		r.opt.Script(r, r.count)
	}
	var speaker audio.Frame
	if r.opt.Output != nil {
		r.opt.Output.Pull(&speaker)
	}
	sum := r.listen()
	r.leak(&sum, speaker)
	var room audio.Frame
	for i, v := range sum {
		room[i] = int16(min(max(v, math.MinInt16), math.MaxInt16))
	}
	if r.opt.Record != nil {
		r.opt.Record(room, speaker)
	}
	r.count++
	r.heard.Add(1)
	return room
}

func (r *Room) listen() (sum [audio.FrameSize]int32) {
	if r.opt.Noise > audio.Silence {
		amplitude := 32768 * math.Pow(10, r.opt.Noise/20)
		for i := range sum {
			sum[i] = int32(math.Round(r.noise.NormFloat64() * amplitude))
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(len(r.said), audio.FrameSize)
	for i, v := range r.said[:n] {
		sum[i] += v
	}
	r.said = r.said[n:]
	if len(r.said) == 0 {
		r.said = nil // or the memory of all that was ever said would stay
	}
	return sum
}

func (r *Room) leak(sum *[audio.FrameSize]int32, speaker audio.Frame) {
	if r.opt.Leak == 0 {
		return
	}
	r.delayed[r.count%len(r.delayed)] = speaker
	if r.count+1 < len(r.delayed) {
		return
	}
	arriving := &r.delayed[(r.count+1)%len(r.delayed)]
	if len(r.opt.Response) == 0 {
		for i, s := range arriving {
			sum[i] += int32(float64(s) * r.opt.Leak)
		}
		return
	}
	past := len(r.opt.Response) - 1
	if r.arrived == nil {
		r.arrived = make([]float64, past+audio.FrameSize)
	}
	copy(r.arrived, r.arrived[audio.FrameSize:])
	for i, s := range arriving {
		r.arrived[past+i] = float64(s) * r.opt.Leak
	}
	for i := range sum {
		v := 0.0
		for n, weight := range r.opt.Response {
			v += weight * r.arrived[past+i-n]
		}
		sum[i] += int32(math.Round(v))
	}
}

// Reverb is the response of a room in which sound dies away by 60 dB in the time d: the direct sound, and then echoes
// from everywhere, like noise, which together are as loud as share of it. It is the same in each run.
func Reverb(d time.Duration, share float64) []float64 {
	n := max(1, int(d*time.Duration(audio.SampleRate)/time.Second))
	response := make([]float64, n)
	noise := rand.New(rand.NewPCG(3, 4))
	power := 0.0
	for i := 1; i < n; i++ {
		response[i] = noise.NormFloat64() * math.Pow(10, -3*float64(i)/float64(n))
		power += response[i] * response[i]
	}
	for i := range response {
		response[i] *= share / math.Sqrt(max(power, 1e-9))
	}
	response[0] = 1
	return response
}
