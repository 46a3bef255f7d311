// Package compare has the appliance's engines work with the Wyoming servers that people use. There is nothing else in it.
package compare

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
	wystt "bellbird/stt/wyoming"
	"bellbird/tts"
	wytts "bellbird/tts/wyoming"
	"bellbird/wyoming"
)

// address is that of a server that deploy/wyoming/run.sh has started.
func address(t *testing.T, variable string) wyoming.Service {
	t.Helper()
	a := os.Getenv(variable)
	if a == "" {
		t.Skipf("%s is not set: make test-wyoming starts the servers", variable)
	}
	return wyoming.Service{Address: a, Wait: time.Minute} // the first time a model is loaded
}

func piper(t *testing.T) *wytts.Voice {
	t.Helper()
	v, err := wytts.New(wytts.Options{Service: address(t, "BELLBIRD_PIPER")})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func whisper(t *testing.T) *wystt.Recognizer {
	t.Helper()
	r, err := wystt.New(wystt.Options{Service: address(t, "BELLBIRD_WHISPER"), Language: "en"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func speak(t *testing.T, v tts.Voice, text string) (frames []audio.Frame, first time.Duration) {
	t.Helper()
	begin := time.Now()
	err := v.Synthesize(t.Context(), text, func(f audio.Frame) error {
		if first == 0 {
			first = time.Since(begin)
		}
		frames = append(frames, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return frames, first
}

// plain are the words of a text.
func plain(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '\'' }), " ")
}

// What Piper says, faster-whisper understands: both through our clients, and the rate of Piper's voice converted.
func TestPiperIsUnderstood(t *testing.T) {
	v, r := piper(t), whisper(t)
	for _, check := range []func(context.Context) (string, error){v.Check, r.Check} {
		what, err := check(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Log(what)
	}
	for _, text := range []string{"Turn on the kitchen light.", "What is the weather like tomorrow?", "The train leaves in twenty minutes. Take an umbrella with you."} {
		frames, first := speak(t, v, text)
		in := make(chan audio.Frame, len(frames)+50)
		for _, f := range slices.Concat(make([]audio.Frame, 25), frames, make([]audio.Frame, 25)) {
			in <- f
		}
		close(in)
		begin := time.Now()
		heard, err := r.Recognize(t.Context(), in)
		t.Logf("%q: first frame after %v, %v of sound; heard %q after %v", text, first.Round(time.Millisecond),
			time.Duration(len(frames))*audio.FrameDuration, heard, time.Since(begin).Round(time.Millisecond))
		if share := understood(text, heard); err != nil || share < 0.7 { // Piper says nothing twice in the same way
			t.Errorf("%q is heard as %q, %v", text, heard, err)
		}
	}
}

// understood is the share of the words of a text that were heard.
func understood(text, heard string) float64 {
	words := func(s string) []string {
		return strings.Fields(strings.ReplaceAll(plain(s), "twenty", "20"))
	}
	all, n := words(text), 0
	for _, w := range all {
		if slices.Contains(words(heard), w) {
			n++
		}
	}
	return float64(n) / float64(len(all))
}

// TestFigures measures what of the wait for the first sound is the appliance's. It never fails.
func TestFigures(t *testing.T) {
	v := piper(t)
	speak(t, v, "ready") // loads the voice
	s := address(t, "BELLBIRD_PIPER")
	if err := s.SetDefaults(); err != nil {
		t.Fatal(err)
	}
	const text = "It is half past nine."
	var ours, bare []time.Duration
	for range 10 {
		_, first := speak(t, v, text)
		ours = append(ours, first)
		bare = append(bare, firstChunk(t, s, text))
	}
	slices.Sort(ours)
	slices.Sort(bare)
	t.Logf("first frame with Piper: %v at the median; first chunk on the wire: %v; the appliance's share: %.1f ms",
		ours[5].Round(time.Millisecond), bare[5].Round(time.Millisecond), math.Max(0, (ours[5]-bare[5]).Seconds()*1000))
}

// firstChunk is how long the service takes to send any sound.
func firstChunk(t *testing.T, s wyoming.Service, text string) time.Duration {
	t.Helper()
	begin := time.Now()
	c, err := s.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Send(t.Context(), wyoming.NewEvent(wyoming.Synthesize, wyoming.Speech{Text: text})); err != nil {
		t.Fatal(err)
	}
	for {
		e, err := c.Receive(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == wyoming.AudioChunk {
			return time.Since(begin)
		}
	}
}

// One sentence is cut off, and the next is spoken all the same: each has a connection of its own.
func TestBargeIn(t *testing.T) {
	v := piper(t)
	enough := errors.New("enough")
	n := 0
	err := v.Synthesize(t.Context(), "This is a long sentence that nobody will hear to its end, because somebody interrupts it.", func(audio.Frame) error {
		if n++; n == 5 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}
	if frames, _ := speak(t, v, "And this is the next one."); len(frames) < 25 {
		t.Errorf("only %d frames", len(frames))
	}
}

// A voice that isn't there must not be asked for, though the server says it could fetch it.
func TestVoices(t *testing.T) {
	v := piper(t)
	names, err := v.Voices(t.Context())
	if err != nil || !slices.Contains(names, "en_US-joe-medium") {
		t.Errorf("%q, %v", names, err)
	}
	t.Logf("it says that it has %d voices", len(names))
	if err := v.SetVoice("no-such-voice"); err == nil {
		t.Error("there is no such voice")
	}
	if err := v.SetVoice("en_US-joe-medium"); err != nil {
		t.Error(err)
	}
	if frames, _ := speak(t, v, "Hello."); len(frames) == 0 {
		t.Error("it says nothing")
	}
}
