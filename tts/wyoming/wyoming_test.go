package wyoming_test

import (
	"context"
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"bellbird/audio"
	tts "bellbird/tts/wyoming"
	"bellbird/wyoming"
	"bellbird/wyoming/wyomingtest"
)

func start(t *testing.T, s wyomingtest.Service, o tts.Options) (*wyomingtest.Server, *tts.Voice) {
	t.Helper()
	if s.Info.Voices == nil {
		s.Info = piper(false, "joe", "amy")
	}
	srv, err := wyomingtest.Start(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	o.Address = srv.Address
	v, err := tts.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return srv, v
}

func piper(streams bool, voices ...string) wyoming.Info {
	p := wyoming.Program{Name: "piper", StreamsSpeech: streams}
	for _, v := range voices {
		p.Voices = append(p.Voices, wyoming.Artifact{Name: v, Installed: v != "far"})
	}
	return wyoming.Info{Voices: []wyoming.Program{p}}
}

// tone is a second of 440 Hz, the same in all channels.
func tone(rate audio.Rate, channels int) []int16 {
	var out []int16
	for i := range int(rate) {
		for range channels {
			out = append(out, int16(10000*math.Sin(2*math.Pi*440*float64(i)/float64(rate))))
		}
	}
	return out
}

func speak(t *testing.T, v interface {
	Synthesize(context.Context, string, func(audio.Frame) error) error
}) (samples []int16, err error) {
	err = v.Synthesize(t.Context(), "Hello there.", func(f audio.Frame) error {
		samples = append(samples, f[:]...)
		return nil
	})
	return samples, err
}

// Whatever the rate, it arrives as a second of the same tone, whether the service streams or not.
func TestSynthesize(t *testing.T) {
	want := tone(audio.SampleRate, 1)
	for _, streams := range []bool{false, true} {
		for _, rate := range []audio.Rate{16000, 22050, 24000, 48000} {
			for _, channels := range []int{1, 2} {
				srv, v := start(t, wyomingtest.Service{Info: piper(streams, "joe"), Samples: tone(rate, channels), Rate: rate, Channels: channels, Chunk: 1000 * channels},
					tts.Options{Voice: "joe", Speaker: "s1"})
				got, err := speak(t, v)
				if err != nil || len(got) != int(audio.SampleRate) {
					t.Fatalf("%v Hz, %d channels: %d samples, %v", rate, channels, len(got), err)
				}
				for i := 1000; i < 15000; i++ {
					if d := int(got[i]) - int(want[i]); d > 60 || d < -60 {
						t.Fatalf("%v Hz, %d channels: sample %d is %d, want %d", rate, channels, i, got[i], want[i])
					}
				}
				var asked []string
				for _, e := range srv.Asked() {
					asked = append(asked, e.Type+string(e.Data))
				}
				voice := `"voice":{"name":"joe","speaker":"s1"}`
				steps := []string{"describe", `synthesize{"text":"Hello there.",` + voice + `}`}
				if streams {
					steps = []string{"describe", "synthesize-start{" + voice + "}", `synthesize-chunk{"text":"Hello there."}`, steps[1], "synthesize-stop"}
				}
				if !slices.Equal(asked, steps) {
					t.Errorf("streams %v: it was asked %q, want %q", streams, asked, steps)
				}
			}
		}
	}
}

func TestRateChangesWithin(t *testing.T) {
	n := 0
	_, v := start(t, wyomingtest.Service{Samples: tone(22050, 1), Rate: 22050, Behave: func(c *wyomingtest.Conn, e wyoming.Event) error {
		if n++; n != 10 {
			return nil
		}
		chunk := wyoming.Sound(make([]audio.Frame, 50)...) // a second at 16 kHz
		return wyoming.Write(c, chunk)
	}}, tts.Options{})
	got, err := speak(t, v)
	if frames := len(got) / audio.FrameSize; err != nil || frames < 100 || frames > 101 {
		t.Errorf("%d frames, %v; want two seconds", frames, err)
	}
}

func TestSynthesizeFails(t *testing.T) {
	stop := errors.New("stop")
	chunks := func(then func(c *wyomingtest.Conn) error) func(*wyomingtest.Conn, wyoming.Event) error {
		n := 0
		return func(c *wyomingtest.Conn, e wyoming.Event) error {
			if e.Type == wyoming.AudioChunk {
				if n++; n == 4 {
					return then(c)
				}
			}
			return nil
		}
	}
	raw := func(text string) func(*wyomingtest.Conn) error {
		return func(c *wyomingtest.Conn) error { c.Write([]byte(text)); return stop }
	}
	for _, tt := range []struct {
		name    string
		service wyomingtest.Service
		want    string
		some    bool // some sound came before
	}{
		{"says so", wyomingtest.Service{Fault: &wyoming.Fault{Text: "no such voice"}}, "the service says: no such voice", false},
		{"repeats what it was to say", wyomingtest.Service{Fault: &wyoming.Fault{Text: "can't say 'Hello there.'"}},
			"the service says what is wrong, and repeats the text in it", false},
		{"stops in mid-sentence", wyomingtest.Service{Behave: chunks(func(*wyomingtest.Conn) error { return stop })},
			"the service closed the connection before its answer was complete", true},
		{"hangs in mid-sentence", wyomingtest.Service{Behave: chunks(func(c *wyomingtest.Conn) error { wyoming.NewReader(c).Read(); return stop })},
			"no answer within 200ms: " + os.ErrDeadlineExceeded.Error(), true},
		{"promises more than it sends", wyomingtest.Service{Behave: chunks(raw(`{"type":"audio-chunk","payload_length":2000}` + "\nxx"))},
			"the service closed the connection before its answer was complete", true},
		{"sends more than it promised", wyomingtest.Service{Behave: chunks(raw(`{"type":"audio-stop","payload_length":2}` + "\nxxxx\n{}\n"))},
			"", true},
		{"promises too much", wyomingtest.Service{Behave: chunks(raw(`{"type":"audio-chunk","payload_length":2000000000}` + "\n"))},
			`event "audio-chunk": an event is too big`, true},
		{"no rate", wyomingtest.Service{Behave: chunks(raw(`{"type":"audio-chunk","data":{"width":2,"channels":1},"payload_length":2}` + "\nxx"))},
			"sound at 0 Hz: 4000 to 192000 are possible", true},
		{"wide samples", wyomingtest.Service{Behave: chunks(raw(`{"type":"audio-start","data":{"rate":16000,"width":4,"channels":1}}` + "\n"))},
			"samples of 4 bytes: only those of 2 are possible", true},
		{"never ends", wyomingtest.Service{Behave: chunks(func(c *wyomingtest.Conn) error {
			for {
				if err := wyoming.Write(c, wyoming.Sound(make([]audio.Frame, 50)...)); err != nil {
					return err
				}
			}
		})}, "it doesn't stop: far more sound than the text is long", true},
		{"never says anything", wyomingtest.Service{Behave: chunks(func(c *wyomingtest.Conn) error {
			for {
				if err := wyoming.Write(c, wyoming.Event{Type: "ping"}); err != nil {
					return err
				}
			}
		})}, "it sends everything but sound", true},
	} {
		tt.service.Samples, tt.service.Rate = tone(22050, 1), 22050
		var o tts.Options
		if strings.HasPrefix(tt.want, "no answer") {
			o.Wait = 200 * time.Millisecond
		}
		srv, v := start(t, tt.service, o)
		got, err := speak(t, v)
		text := ""
		if err != nil {
			text = strings.TrimPrefix(strings.TrimPrefix(err.Error(), "voice: "), srv.Address+": ")
		}
		if text != tt.want || (len(got) > 0) != tt.some {
			t.Errorf("%s: got %d samples and %q, want %q", tt.name, len(got), text, tt.want)
		}
	}
}

func TestListener(t *testing.T) {
	_, v := start(t, wyomingtest.Service{Samples: tone(16000, 1)}, tts.Options{})
	enough := errors.New("enough")
	n := 0
	err := v.Synthesize(t.Context(), "Hello.", func(audio.Frame) error {
		if n++; n == 3 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || n != 3 {
		t.Errorf("%d frames, %v", n, err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	err = v.Synthesize(ctx, "Hello.", func(audio.Frame) error { cancel(enough); return nil })
	if !errors.Is(err, enough) {
		t.Errorf("cancelled: %v", err)
	}
	if err := v.Synthesize(t.Context(), strings.Repeat("a", 20001), nil); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("a long text: %v", err)
	}
}

func TestVoices(t *testing.T) {
	srv, v := start(t, wyomingtest.Service{Info: piper(false, "joe", "far", "amy"), Samples: tone(16000, 1)}, tts.Options{Voice: "joe"})
	asked := func() string {
		if _, err := speak(t, v); err != nil {
			t.Error(err)
		}
		all := srv.Asked()
		return string(all[len(all)-1].Data)
	}
	if err := v.SetVoice("robot"); err != nil { // nobody was asked yet
		t.Error(err)
	}
	if got := asked(); !strings.Contains(got, `"joe"`) {
		t.Errorf("a voice that isn't there was asked for: %s", got)
	}
	if err := v.SetVoice("robot"); err == nil {
		t.Error("a voice that is known not to be there is taken")
	}
	if err := v.SetVoice("amy"); err != nil {
		t.Error(err)
	}
	if got := asked(); !strings.Contains(got, `"amy"`) {
		t.Errorf("asked for %s", got)
	}
	other, err := v.Named("far")
	if err != nil {
		t.Fatal(err)
	}
	if name, speed := other.Settings(); name != "far" || speed != 1 {
		t.Errorf("%q at %v", name, speed)
	}
	if _, err := v.Named("robot"); err == nil {
		t.Error("there is no voice of that name")
	}
	if names, err := v.Voices(t.Context()); err != nil || !slices.Equal(names, []string{"amy", "joe"}) {
		t.Errorf("%q, %v", names, err)
	}
	if v.SetSpeed(1) != nil || v.SetPitch(1) != nil || v.SetSpeed(2) == nil || v.SetPitch(2) == nil {
		t.Error("speed and pitch are not what the protocol can do")
	}
	if what, err := v.Check(t.Context()); err != nil || what != "piper with joe at "+srv.Address {
		t.Errorf("%q, %v", what, err)
	}
}
