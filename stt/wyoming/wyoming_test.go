package wyoming_test

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"bellbird/audio"
	stt "bellbird/stt/wyoming"
	"bellbird/wyoming"
	"bellbird/wyoming/wyomingtest"
)

func start(t *testing.T, s wyomingtest.Service, wait time.Duration) (*wyomingtest.Server, *stt.Recognizer) {
	t.Helper()
	srv, err := wyomingtest.Start(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	return srv, recognizer(t, stt.Options{Service: wyoming.Service{Address: srv.Address, Wait: wait}, Model: "tiny", Language: "en"})
}

func recognizer(t *testing.T, o stt.Options) *stt.Recognizer {
	t.Helper()
	r, err := stt.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// ramp are n frames, each sample of which is its number.
func ramp(n int) (frames []audio.Frame, samples []int16) {
	for i := range n * audio.FrameSize {
		samples = append(samples, int16(i))
	}
	return audio.Split(samples), samples
}

func feed(frames []audio.Frame) <-chan audio.Frame {
	c := make(chan audio.Frame, len(frames))
	for _, f := range frames {
		c <- f
	}
	close(c)
	return c
}

func TestRecognize(t *testing.T) {
	frames, samples := ramp(10)
	for name, s := range map[string]wyomingtest.Service{
		"whole":                  {Text: " turn on the light\n"},
		"streamed":               {Text: "turn on the light", Bits: []string{"turn on", " the light"}},
		"streamed, and no whole": {Bits: []string{"turn on", " the light"}, NoWhole: true},
	} {
		srv, r := start(t, s, 0)
		if text, err := r.Recognize(t.Context(), feed(frames)); err != nil || text != "turn on the light" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		var types []string
		for _, e := range srv.Asked() {
			types = append(types, e.Type)
		}
		if want := strings.Fields("transcribe audio-start audio-chunk audio-chunk audio-chunk audio-stop"); !slices.Equal(types, want) {
			t.Errorf("%s: it was asked %v", name, types)
		}
		if string(srv.Asked()[0].Data) != `{"language":"en","name":"tiny"}` {
			t.Errorf("%s: %s", name, srv.Asked()[0].Data)
		}
		if !slices.Equal(srv.Heard(), samples) {
			t.Errorf("%s: it heard %d samples, not the %d that were said", name, len(srv.Heard()), len(samples))
		}
	}
}

// A service that finds an end by itself is believed, and what follows is taken and dropped.
func TestFindsItsOwnEnd(t *testing.T) {
	_, r := start(t, wyomingtest.Service{Text: "stop", AtOnce: true}, 0)
	frames := make(chan audio.Frame)
	text := make(chan string)
	go func() {
		heard, err := r.Recognize(t.Context(), frames)
		if err != nil {
			t.Error(err)
		}
		text <- heard
	}()
	for range 100 {
		frames <- audio.Frame{}
	}
	close(frames)
	if got := <-text; got != "stop" {
		t.Errorf("got %q", got)
	}
}

func TestRecognizeFails(t *testing.T) {
	stop := errors.New("stop")
	frames, _ := ramp(10)
	for _, tt := range []struct {
		name    string
		service wyomingtest.Service
		want    string
	}{
		{"says so", wyomingtest.Service{Fault: &wyoming.Fault{Text: "no memory", Code: "E1"}}, "the service says: E1: no memory"},
		{"goes away", wyomingtest.Service{Behave: func(*wyomingtest.Conn, wyoming.Event) error { return stop }},
			"the service closed the connection before its answer was complete"},
		{"goes away in mid-sentence", wyomingtest.Service{Text: "a", Bits: []string{"a", "b"}, Behave: func(_ *wyomingtest.Conn, e wyoming.Event) error {
			if strings.Contains(string(e.Data), "b") {
				return stop
			}
			return nil
		}}, "the service closed the connection before its answer was complete"},
		{"lies about lengths", wyomingtest.Service{Behave: func(c *wyomingtest.Conn, _ wyoming.Event) error {
			c.Write([]byte(`{"type":"transcript","data_length":50}` + "\n{}"))
			return stop
		}}, "the service closed the connection before its answer was complete"},
		{"never answers", wyomingtest.Service{Behave: func(c *wyomingtest.Conn, _ wyoming.Event) error {
			wyoming.NewReader(c).Read() // until the other side has enough
			return stop
		}}, "no answer within 100ms: " + os.ErrDeadlineExceeded.Error()},
		{"never ends", wyomingtest.Service{Text: "x", Bits: []string{"x"}, Behave: func(c *wyomingtest.Conn, e wyoming.Event) error {
			for {
				if err := wyoming.Write(c, wyoming.NewEvent(wyoming.TranscriptChunk, wyoming.Text{Text: strings.Repeat("x", 60000)})); err != nil {
					return err
				}
			}
		}}, "the service understood more than anybody can say"},
	} {
		var wait time.Duration // the default
		if strings.HasPrefix(tt.want, "no answer") {
			wait = 100 * time.Millisecond
		}
		srv, r := start(t, tt.service, wait)
		_, err := r.Recognize(t.Context(), feed(frames))
		if err == nil || strings.TrimPrefix(strings.TrimPrefix(err.Error(), "recogniser: "), srv.Address+": ") != tt.want {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestCancelled(t *testing.T) {
	_, r := start(t, wyomingtest.Service{}, 0)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("barge-in")
	frames := make(chan audio.Frame)
	done := make(chan error)
	go func() {
		_, err := r.Recognize(ctx, frames)
		done <- err
	}()
	for range 8 {
		frames <- audio.Frame{}
	}
	cancel(why)
	if err := <-done; !errors.Is(err, why) {
		t.Errorf("got %v, want the cause", err)
	}
}

func TestCheck(t *testing.T) {
	program := func(models ...string) wyoming.Info {
		p := wyoming.Program{Name: "faster-whisper"}
		for _, m := range models {
			p.Models = append(p.Models, wyoming.Artifact{Name: m})
		}
		return wyoming.Info{Recognisers: []wyoming.Program{p}}
	}
	for want, info := range map[string]wyoming.Info{
		"faster-whisper with tiny at ADDRESS":                                         program("base", "tiny"),
		`recogniser: ADDRESS has no model "tiny", but ["base"]`:                       program("base"),
		"recogniser: ADDRESS: that service recognises nothing: is it the right port?": {},
	} {
		srv, r := start(t, wyomingtest.Service{Info: info}, 0)
		got, err := r.Check(t.Context())
		if err != nil {
			got = err.Error()
		}
		if got = strings.ReplaceAll(got, srv.Address, "ADDRESS"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	r := recognizer(t, stt.Options{Service: wyoming.Service{Address: address}})
	if _, err := r.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "no service listens there") {
		t.Errorf("nobody there: %v", err)
	}
	if _, err := stt.New(stt.Options{}); err == nil {
		t.Error("no address is taken")
	}
}
