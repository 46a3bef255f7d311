package main

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"testing"

	"bellbird/api"
	"bellbird/audio"
	"bellbird/audio/audiotest"
	"bellbird/clock"
)

// How many requests are answered while the appliance speaks on the real clock, and whether its speech suffers. It
// measures, and judges nothing.
func BenchmarkRequestsDuringTurns(b *testing.B) {
	if testing.Short() {
		b.Skip("it takes seconds")
	}
	dir := b.TempDir()
	f := flags{state: filepath.Join(dir, "state")}
	c, err := f.load()
	if err != nil {
		b.Fatal(err)
	}
	c.API.Listen = "127.0.0.1:0"
	log := slog.New(slog.DiscardHandler)
	output := audio.NewOutput(0)
	a, err := assemble(c, senses{timers: true, lasting: true, output: output}, clock.System, log)
	if err != nil {
		b.Skip(err)
	}
	web, server, err := a.web(c.API, a.offer(c, api.Options{Turns: a.turns}, log))
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	room := audiotest.NewRoom(audiotest.RoomOptions{Output: output})
	go func() { ended <- a.run(ctx, realRoom{room}, web...) }()

	talks, stop := context.WithCancel(b.Context())
	turns := make(chan int)
	go func() {
		n := 0
		for talks.Err() == nil {
			if _, err := a.turns.Say(talks, "One, two, three, four, five, six, seven, eight, nine, ten."); err == nil {
				n++
			}
		}
		turns <- n
	}()
	for !output.Sounding() {
		select {
		case err := <-ended:
			b.Fatal(err)
		default:
		}
	}
	before := output.Stats()
	for b.Loop() {
		resp, err := http.Get("http://" + server.Addr().String() + "/api/state")
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != 200 {
			b.Fatal(resp.Status, err)
		}
		resp.Body.Close()
	}
	s := output.Stats().Since(before)
	stop()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
	b.ReportMetric(float64(<-turns), "turns")
	b.ReportMetric(float64(s.Spoken), "frames")
	b.ReportMetric(float64(s.Underruns), "underruns")
	cancel()
	if err := <-ended; err != nil {
		b.Error(err)
	}
}

// realRoom is a virtual device on the real clock whose microphone nobody listens to.
type realRoom struct{ *audiotest.Room }

func (r realRoom) Run(ctx context.Context) error {
	go func() {
		for range r.Frames() {
		}
	}()
	return r.Room.Run(ctx)
}
