package main

import (
	"log/slog"
	"testing"

	"bellbird/audio"
	"bellbird/event"
	"bellbird/hooks"
	"bellbird/wyoming"
	"bellbird/wyoming/wyomingtest"
)

// The voice on the network speaks, and when it is gone the built-in one does, and says so.
func TestVoiceFallsBack(t *testing.T) {
	var c Config
	if err := c.decode("test.toml", "[tts]\nengine = \"wyoming\"\nwords_per_minute = 150\n[tts.wyoming]\naddress = \"x:1\"\nvoice = \"joe\"\n"+
		"[stt]\nengine = \"openai\"\nstrictness = 2.0\n[stt.openai]\nmodel = \"whisper-1\"\nlanguage = \"en\"\n"); err != nil {
		t.Fatal(err)
	}
	if c.TTS.WordsPerMinute != 150 || c.TTS.Wyoming.Voice != "joe" || c.STT.Strictness != 2 || c.STT.OpenAI.Language != "en" || c.STT.OpenAI.Model != "whisper-1" {
		t.Errorf("%+v, %+v", c.TTS, c.STT)
	}
	srv, err := wyomingtest.Start(wyomingtest.Service{Info: wyoming.Info{Voices: []wyoming.Program{{Name: "piper"}}}, Samples: make([]int16, 16000)})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	c.TTS.Wyoming.Address, c.TTS.Wyoming.Voice = srv.Address, ""
	a := &appliance{bus: new(event.Bus), hooks: hooks.New(hooks.Options{})}
	defer a.hooks.Close()
	facts := a.bus.Subscribe(4)
	defer facts.Close()
	v, err := a.speak(c.TTS, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	say := func() (frames int, loud bool) {
		t.Helper()
		if err := v.Synthesize(t.Context(), "hello", func(f audio.Frame) error {
			frames++
			loud = loud || f != audio.Frame{}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return frames, loud
	}
	if frames, loud := say(); frames != 50 || loud {
		t.Errorf("%d frames, loud %v: not what the service says", frames, loud)
	}
	srv.Close()
	if _, loud := say(); !loud {
		t.Error("the built-in voice says nothing")
	}
	if f, ok := (<-facts.C).(event.ProviderSwitched); !ok || f.Kind != "tts" || f.Name != "espeak-ng" || !f.Instead {
		t.Errorf("told %+v", f)
	}
	if _, err := (&appliance{}).speak(TTS{Engine: "robot"}, nil); err == nil {
		t.Error("an engine that isn't there is taken")
	}
}
