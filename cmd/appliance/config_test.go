package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bellbird/wake"
)

func TestConfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.toml")
	text := `
volume = 40
wake_sound = false

[wake]
words = ["alexa", "okay_nabu"]
silence = "800ms"
model_dirs = ["/somewhere"]

[wake.cutoff]
alexa = 0.8

[turn]
model_timeout = "5s"

[tts]
voice = "en-gb"
words_per_minute = 150

[sound]
capture = "seeed"
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f := flags{config: path}
	c, err := f.load()
	if err != nil {
		t.Fatal(err)
	}
	if *c.Volume != 40 || *c.WakeSound || len(c.Wake.Words) != 2 || c.Wake.Silence != 800*time.Millisecond || c.Wake.Cutoff["alexa"] != 0.8 ||
		c.Wake.ModelDirs[0] != "/somewhere" || c.Turn.ModelTimeout != 5*time.Second || c.TTS.WordsPerMinute != 150 || c.Sound.Capture != "seeed" {
		t.Errorf("%+v", c)
	}
	f.models = []string{"here"}
	if c, err = f.load(); err != nil || c.Wake.ModelDirs[0] != "here" {
		t.Errorf("--models: %v, %v", c.Wake.ModelDirs, err)
	}
}

// A wake word may have a table of its own, beside those which are only named.
func TestConfigOfWords(t *testing.T) {
	var c Config
	err := c.decode("config.toml", `
[wake]
words = ["okay_nabu"]
stop_word = false

[[wake.word]]
name = "alexa"
cutoff = 0.8
window = 7
action = "stop"

[[wake.word]]
name = "computer"
action = "routine"
routine = "goodnight"
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []wake.Word{
		{Name: "okay_nabu", Action: wake.Listen}, {Name: "alexa", Cutoff: 0.8, Window: 7, Action: wake.Stop},
		{Name: "computer", Action: wake.RunRoutine, Routine: "goodnight"},
	}
	if got := c.Wake.All(); !slices.Equal(got, want) || *c.Wake.StopWord {
		t.Errorf("got %+v", got)
	}
	if err := c.decode("config.toml", "[[wake.word]]\nname = \"alexa\"\ncut = 1\n"); err == nil || !strings.Contains(err.Error(), `config.toml:3: unknown key "wake.word.cut"`) {
		t.Errorf("error %v", err)
	}
}

func TestConfigErrors(t *testing.T) {
	for text, want := range map[string]string{
		"volume = 40\nvolumme = 3\n":                       `config.toml:2: unknown key "volumme"`,
		"[wake]\nwords = []\n\n[turn]\nsilence = \"1s\"\n": `config.toml:5: unknown key "turn.silence"`,
		"[weak]\nx = 1\n":                                  `config.toml:1: unknown key "weak"`,
		"[wake]\nlogger = 1\n":                             `config.toml:2: unknown key "wake.logger"`,
		"volume = \n":                                      `config.toml:1: `,
		"[wake\n":                                          `config.toml:2: `,
		"volume = \"loud\"\n":                              `volume`,
		"volume = 140\n":                                   `volume = 140: it goes from 0 to 100`,
		"[turn]\nmodel_timeout = \"soon\"\n":               `model_timeout`,
	} {
		path := filepath.Join(t.TempDir(), "config.toml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f := flags{config: path}
		_, err := f.load()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
			continue
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: more than a line: %v", text, err)
		}
		if code := execute(t.Context(), []string{"check", "--config", path}, &strings.Builder{}, &strings.Builder{}); code != exitUsage {
			t.Errorf("%q: exit code %d", text, code)
		}
	}
	f := flags{config: "/nowhere/config.toml"}
	if _, err := f.load(); err == nil || !strings.Contains(err.Error(), "/nowhere/config.toml") {
		t.Errorf("a missing file: %v", err)
	}
}

func FuzzConfig(f *testing.F) {
	f.Add("[wake]\nwords = [\"alexa\"]\nx = 1\n")
	f.Fuzz(func(_ *testing.T, text string) {
		var c Config
		_ = c.decode("config.toml", text) // must not panic
	})
}
