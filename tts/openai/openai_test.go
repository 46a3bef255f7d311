package openai_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"bellbird/audio"
	"bellbird/dialog"
	"bellbird/internal/speechapi"
	"bellbird/tts/openai"
)

func start(t *testing.T, h http.HandlerFunc, o openai.Options) *openai.Voice {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	o.BaseURL, o.Model = srv.URL+"/v1", "kokoro"
	v, err := openai.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func tone(rate int) []byte {
	var out []byte
	for i := range rate {
		out = binary.LittleEndian.AppendUint16(out, uint16(int16(10000*math.Sin(2*math.Pi*440*float64(i)/float64(rate)))))
	}
	return out
}

func speak(t *testing.T, v *openai.Voice) (samples []int16, err error) {
	err = v.Synthesize(t.Context(), "Hello there.", func(f audio.Frame) error {
		samples = append(samples, f[:]...)
		return nil
	})
	return samples, err
}

// sends sends a body piece by piece, with odd numbers of bytes.
func sends(contentType string, body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		for rest := body; len(rest) > 0; {
			n := min(3333, len(rest))
			w.Write(rest[:n])
			w.(http.Flusher).Flush()
			rest = rest[n:]
		}
	}
}

// Whatever the server makes of the format, a second of the same tone arrives.
func TestSynthesize(t *testing.T) {
	samples := func(pcm []byte) (out []int16) {
		for ; len(pcm) > 0; pcm = pcm[2:] {
			out = append(out, int16(binary.LittleEndian.Uint16(pcm)))
		}
		return out
	}
	want := samples(tone(16000))
	wav := audio.EncodeWAV(audio.Split(want))
	endless := slices.Clone(wav)
	copy(endless[40:], []byte{0xff, 0xff, 0xff, 0xff}) // its length isn't known yet
	for name, tt := range map[string]struct {
		server http.HandlerFunc
		o      openai.Options
	}{
		"pcm":                      {sends("audio/pcm", tone(24000)), openai.Options{}},
		"pcm at another rate":      {sends("audio/pcm", tone(44100)), openai.Options{Rate: 44100}},
		"pcm, and tells the rate":  {sends("audio/L16; rate=22050", tone(22050)), openai.Options{}},
		"wav":                      {sends("audio/wav", wav), openai.Options{Format: "wav"}},
		"wav as it is made":        {sends("audio/x-wav", endless), openai.Options{Format: "wav"}},
		"wav, though pcm is asked": {sends("application/octet-stream", wav), openai.Options{}},
	} {
		got, err := speak(t, start(t, tt.server, tt.o))
		if err != nil || len(got) != len(want) {
			t.Errorf("%s: %d samples, %v", name, len(got), err)
			continue
		}
		for i := 1000; i < 15000; i++ {
			if d := int(got[i]) - int(want[i]); d > 60 || d < -60 {
				t.Errorf("%s: sample %d is %d, want %d", name, i, got[i], want[i])
				break
			}
		}
	}
}

// Sound is handed over while the server still makes it.
func TestStreams(t *testing.T) {
	heard := make(chan bool)
	v := start(t, func(w http.ResponseWriter, r *http.Request) {
		w.Write(tone(24000))
		w.(http.Flusher).Flush()
		<-heard
		w.Write(tone(24000))
	}, openai.Options{})
	n := 0
	if err := v.Synthesize(t.Context(), "Hello.", func(audio.Frame) error {
		if n++; n == 1 {
			close(heard)
		}
		return nil
	}); err != nil || n != 100 {
		t.Errorf("%d frames, %v", n, err)
	}
}

func TestSynthesizeFails(t *testing.T) {
	hang := func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	for _, tt := range []struct {
		name   string
		server http.HandlerFunc
		kind   dialog.ModelErrorKind
		text   string
		some   bool
	}{
		{"no such voice", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, `{"error":"no voice alloy"}`, 400) }, dialog.BadRequest, "no voice alloy", false},
		{"repeats the text", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, `{"error":"bad: Hello there."}`, 400) }, dialog.BadRequest, "the server repeats the text in its error", false},
		{"a page", sends("text/html; charset=utf-8", []byte("<html></html>")), dialog.ServerFault, "text/html instead of sound", false},
		{"MP3", sends("audio/mpeg", []byte("ID3xxxxxxxx")), dialog.ServerFault, "compressed", false},
		{"a broken WAV", sends("audio/wav", []byte("RIFFxxxxyyyy")), dialog.ServerFault, "not a WAV file", false},
		{"an odd rate", sends("audio/L16; rate=12", tone(1000)), dialog.ServerFault, "12 Hz", false},
		{"never ends", func(w http.ResponseWriter, r *http.Request) {
			for {
				if _, err := w.Write(tone(24000)); err != nil {
					return
				}
			}
		}, dialog.ServerFault, "it doesn't stop", true},
		{"stops in mid-sentence", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "100000")
			w.Write(tone(24000))
		}, dialog.CutOff, "unexpected EOF", true},
		{"hangs in mid-sentence", func(w http.ResponseWriter, r *http.Request) { w.Write(tone(24000)); hang(w, r) }, dialog.Stalled, "no answer in time", true},
		{"never begins", func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body); <-r.Context().Done() }, dialog.Stalled, "no answer in time", false},
	} {
		var wait time.Duration // the default
		if tt.kind == dialog.Stalled {
			wait = 200 * time.Millisecond
		}
		v := start(t, tt.server, openai.Options{Options: speechapi.Options{Wait: wait}})
		got, err := speak(t, v)
		var e *dialog.ModelError
		if !errors.As(err, &e) || e.Kind != tt.kind || !strings.Contains(err.Error(), tt.text) || (len(got) > 0) != tt.some {
			t.Errorf("%s: %d samples, %v", tt.name, len(got), err)
		}
	}
}

func TestSettings(t *testing.T) {
	var asked map[string]any
	v := start(t, func(w http.ResponseWriter, r *http.Request) {
		asked = nil
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || r.URL.Path != "/v1/audio/speech" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		w.Write(tone(2400))
	}, openai.Options{Voice: "af_sky", Voices: []string{"bm_lewis"}, Speed: 1.5})
	expect := func(v *openai.Voice, voice string, speed float64) {
		t.Helper()
		if _, err := speak(t, v); err != nil {
			t.Error(err)
		}
		if asked["voice"] != voice || asked["speed"] != speed || asked["model"] != "kokoro" || asked["response_format"] != "pcm" || asked["input"] != "Hello there." {
			t.Errorf("asked %v, want %s at %v", asked, voice, speed)
		}
	}
	expect(v, "af_sky", 1.5)
	if v.SetVoice("bm_lewis") != nil || v.SetSpeed(2) != nil || v.SetPitch(1) != nil {
		t.Error("a change is refused")
	}
	expect(v, "bm_lewis", 3)
	if name, speed := v.Settings(); name != "bm_lewis" || speed != 2 {
		t.Errorf("%q at %v", name, speed)
	}
	if v.SetVoice("robot") == nil || v.SetSpeed(5) == nil || v.SetSpeed(math.NaN()) == nil || v.SetPitch(2) == nil {
		t.Error("what can't be is taken")
	}
	other, err := v.Named("af_sky")
	if err != nil {
		t.Fatal(err)
	}
	if v.SetVoice("") != nil || v.SetSpeed(4) != nil {
		t.Error("a change is refused")
	}
	expect(v, "af_sky", 4) // 6 would be too fast
	if name, speed := other.Settings(); name != "af_sky" || speed != 2 {
		t.Errorf("%q at %v", name, speed)
	}
	if names, err := v.Voices(t.Context()); err != nil || !slices.Equal(names, []string{"af_sky", "bm_lewis"}) {
		t.Errorf("%q, %v", names, err)
	}
	for _, o := range []openai.Options{{}, {Format: "mp3"}, {Speed: 9}} {
		if _, err := openai.New(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}
