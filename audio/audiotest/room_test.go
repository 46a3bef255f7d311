package audiotest_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/audio"
	"bellbird/audio/audiotest"
	"bellbird/clock"
)

// start is any time.
func start() time.Time { return time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC) }

// virtual runs the room on a virtual clock, and hears n frames.
func virtual(t *testing.T, r *audiotest.Room, v *clock.Virtual, n int) (heard []audio.Frame) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- r.RunVirtual(ctx, v) }()
	for range n {
		heard = append(heard, <-r.Frames())
	}
	cancel()
	for range r.Frames() {
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return heard
}

func join(frames []audio.Frame) (s []int16) {
	for _, f := range frames {
		s = append(s, f[:]...)
	}
	return s
}

func TestSay(t *testing.T) {
	r := audiotest.NewRoom(audiotest.RoomOptions{Noise: audio.Silence})
	words := join(audiotest.Ramp(0, 3))
	if n := r.Say(words[:700]); n != 3 {
		t.Errorf("700 samples take %d frames, want 3", n)
	}
	if n := r.SayAfter(40*time.Millisecond, words); n != 5 || r.Quiet() {
		t.Errorf("until %d frames from now, want 5; quiet: %v", n, r.Quiet())
	}
	heard := virtual(t, r, clock.NewVirtual(start()), 6)
	for i, want := range []int16{1, 2, 3 + 1, 2, 3, 0} {
		if heard[i][0] != want {
			t.Errorf("frame %d begins with %d, want %d", i, heard[i][0], want)
		}
	}
	if heard[2][audio.FrameSize-1] != 1 {
		t.Error("the end of the first words isn't where it should be")
	}
	if !r.Quiet() {
		t.Error("not quiet when all has been heard")
	}
}

func TestNoise(t *testing.T) {
	hear := func() []audio.Frame {
		return virtual(t, audiotest.NewRoom(audiotest.RoomOptions{}), clock.NewVirtual(start()), 50)
	}
	a, b := hear(), hear()
	if l := audio.Measure(join(a)); l.RMS < -66 || l.RMS > -64 {
		t.Errorf("the noise is at %.1f dB, want -65", l.RMS)
	}
	for i := range a {
		if a[i] != b[i] {
			t.Fatalf("frame %d isn't the same in each run", i)
		}
	}
}

// Virtual time goes on by a frame for each frame that was taken, and not one more.
func TestVirtualTimeKeepsPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := clock.NewVirtual(start())
		r := audiotest.NewRoom(audiotest.RoomOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		go r.RunVirtual(ctx, v)
		for i := range 100 {
			synctest.Wait()
			if got, want := v.Now().Sub(start()), time.Duration(i+1)*audio.FrameDuration; got != want {
				t.Fatalf("at %v before frame %d is taken, want %v", got, i, want)
			}
			<-r.Frames()
		}
		cancel()
		if _, open := <-r.Frames(); open {
			t.Error("not closed at the end")
		}
	})
}

func TestSpeakerAndRecord(t *testing.T) {
	out := audio.NewOutput(0)
	var mu sync.Mutex
	var rooms, speakers []audio.Frame
	r := audiotest.NewRoom(audiotest.RoomOptions{
		Output: out,
		Noise:  audio.Silence,
		Leak:   0.5,
		Record: func(room, speaker audio.Frame) {
			mu.Lock()
			defer mu.Unlock()
			rooms, speakers = append(rooms, room), append(speakers, speaker)
		},
		Script: func(r *audiotest.Room, frame int) {
			if frame == 3 {
				f := audiotest.Numbered(99)
				r.Say(f[:])
			}
		},
	})
	s := out.Open()
	for _, f := range audiotest.Ramp(199, 2) {
		s.Write(t.Context(), f)
	}
	heard := virtual(t, r, clock.NewVirtual(start()), 8)
	for i, want := range []struct{ room, speaker int16 }{{0, 200}, {0, 201}, {100, 0}, {100 + 100, 0}, {0, 0}} {
		// The samples after a release, which follows speech that stops short of zero.
		at := audio.FrameSize / 2
		if rooms[i][at] != want.room || speakers[i][at] != want.speaker || heard[i] != rooms[i] {
			t.Errorf("frame %d: room %d, speaker %d, want %+v", i, rooms[i][at], speakers[i][at], want)
		}
	}
	if n := r.Heard(); n < 8 {
		t.Errorf("%d frames heard, want at least 8", n)
	}
}

// The room's response comes after the delay, over the borders of frames, and what it adds is as loud as it should be.
func TestResponse(t *testing.T) {
	out := audio.NewOutput(0)
	response := make([]float64, 500)
	response[0], response[1], response[400] = 1, -0.5, 0.25
	r := audiotest.NewRoom(audiotest.RoomOptions{Output: out, Noise: audio.Silence, Leak: 0.5, LeakDelay: 20 * time.Millisecond, Response: response})
	s := out.Open()
	if err := s.Write(t.Context(), audio.Frame{10: 200}); err != nil {
		t.Fatal(err)
	}
	heard := join(virtual(t, r, clock.NewVirtual(start()), 5))
	want := map[int]int16{330: 100, 331: -50, 730: 25}
	for i, v := range heard {
		if v != want[i] {
			t.Errorf("sample %d is %d, want %d", i, v, want[i])
		}
	}

	reverb := audiotest.Reverb(300*time.Millisecond, 0.5)
	power := 0.0
	for _, v := range reverb[1:] {
		power += v * v
	}
	if len(reverb) != 4800 || reverb[0] != 1 || power < 0.249 || power > 0.251 {
		t.Errorf("%d samples that begin with %v and have a power of %v", len(reverb), reverb[0], power)
	}
	late := 0.0
	for _, v := range reverb[2400:] {
		late += v * v
	}
	if late > power/500 {
		t.Errorf("after half the time there is still %v of %v", late, power)
	}
}

func TestRealTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := audio.NewOutput(0)
		r := audiotest.NewRoom(audiotest.RoomOptions{Output: out})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Run(ctx) }()

		at := time.Now()
		for range 100 {
			<-r.Frames()
		}
		if d := time.Since(at); d != 2*time.Second {
			t.Errorf("100 frames took %v, want 2s", d)
		}

		// A listener who is away for 3 s has lost what doesn't fit into the queue, and the loudspeaker went on.
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if n := r.Dropped(); n < 90 || n > 110 {
			t.Errorf("%d frames dropped in 3 s with a queue of one, want about 100", n)
		}
		if n := out.Stats().Pulled; n != 250 {
			t.Errorf("the loudspeaker took %d frames in 5 s, want 250", n)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		for range r.Frames() { // ends because it is closed
		}
	})
}

func TestRamp(t *testing.T) {
	for i, f := range audiotest.Ramp(5, 3) {
		if n, ok := audiotest.Number(f); n != 5+i || !ok {
			t.Errorf("frame %d has number %d, %v", i, n, ok)
		}
	}
	f := audiotest.Numbered(7)
	f[100]++
	if _, ok := audiotest.Number(f); ok {
		t.Error("a changed frame has a number")
	}
	if _, ok := audiotest.Number(audio.Frame{}); ok {
		t.Error("silence has a number")
	}
}

func ExampleRoom() {
	v := clock.NewVirtual(start())
	room := audiotest.NewRoom(audiotest.RoomOptions{Output: audio.NewOutput(0)})
	room.Say(make([]int16, 16000)) // a second of what a user says

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go room.RunVirtual(ctx, v)
	for range room.Frames() { // the appliance listens
		if room.Quiet() {
			cancel()
		}
	}
	fmt.Println(v.Now().Sub(start()) >= time.Second)
	// Output: true
}
