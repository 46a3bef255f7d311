package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a user meets when something is missing or broken: one line that names the thing and the remedy.
func TestErrorsNameThingAndRemedy(t *testing.T) {
	needDemo(t)
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	read := func(path string) []byte {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}

	whole := filepath.Join(dir, "whole.wav")
	if code := execute(t.Context(), []string{"say", "--wav", whole, "hello"}, new(bytes.Buffer), new(bytes.Buffer)); code != 0 {
		t.Fatalf("say --wav: exit code %d", code)
	}
	truncated := write("truncated.wav", read(whole)[:2000])
	noise := write("noise.wav", bytes.Repeat([]byte("no wav"), 1000))
	empty := write("empty.wav", nil)

	half := filepath.Join(dir, "half")
	if err := os.Mkdir(half, 0o700); err != nil {
		t.Fatal(err)
	}
	model := read(filepath.Join(modelDirs[0], "okay_nabu.tflite"))
	write("half/okay_nabu.tflite", model[:len(model)/2])
	write("half/okay_nabu.json", read(filepath.Join(modelDirs[0], "okay_nabu.json")))
	write("half/alexa.json", read(filepath.Join(modelDirs[0], "alexa.json")))

	noVoice := write("voice.toml", []byte("[tts]\ncommand = \"no-such-voice\"\n"))
	noRecogniser := write("stt.toml", []byte("[stt]\nmodel_dir = \"/no/such/dir\"\n"))
	typo := write("typo.toml", []byte("[wake]\nwrods = [\"alexa\"]\n"))
	noDevice := write("sound.toml", []byte("[sound]\nbackend = \"null\"\nplayback = \"no such speaker\"\n"))
	noSystem := write("system.toml", []byte("[sound]\nbackend = \"gramophone\"\n"))

	for name, test := range map[string]struct {
		args []string
		code int
		want []string // parts of the line
	}{
		"no model":         {[]string{"demo", "--fast", "--models", dir}, exitUsage, []string{"okay_nabu", dir, "make models"}},
		"model not there":  {[]string{"wake", "--models", half, "--words", "alexa", whole}, exitUsage, []string{"alexa.tflite"}},
		"half a model":     {[]string{"demo", "--fast", "--models", half}, exitUsage, []string{"okay_nabu.tflite", "truncated"}},
		"no voice":         {[]string{"demo", "--fast", "--models", modelDirs[0], "--config", noVoice}, exitUsage, []string{"no-such-voice", "apt install espeak-ng"}},
		"no recogniser":    {[]string{"demo", "--fast", "--models", modelDirs[0], "--config", noRecogniser}, exitUsage, []string{"/no/such/dir", "apt install pocketsphinx-en-us"}},
		"typo":             {[]string{"demo", "--config", typo}, exitUsage, []string{typo + ":2", `"wake.wrods"`}},
		"no config":        {[]string{"check", "--config", "/no/such/file"}, exitUsage, []string{"/no/such/file"}},
		"no loudspeaker":   {[]string{"say", "--config", noDevice, "hello"}, exitFailed, []string{"no such speaker", "loudspeaker"}},
		"no sound system":  {[]string{"run", "--models", modelDirs[0], "--config", noSystem, "--state", dir}, exitUsage, []string{"gramophone", "alsa"}},
		"truncated WAV":    {[]string{"demo", "--fast", "--models", modelDirs[0], "--wav", truncated}, exitUsage, []string{truncated, "truncated"}},
		"no WAV":           {[]string{"wake", "--models", modelDirs[0], noise}, exitFailed, []string{noise}},
		"empty WAV":        {[]string{"wake", "--models", modelDirs[0], empty}, exitFailed, []string{empty}},
		"missing WAV":      {[]string{"wake", "--models", modelDirs[0], "/no/such.wav"}, exitFailed, []string{"/no/such.wav"}},
		"unknown command":  {[]string{"sing"}, exitUsage, []string{"sing", "--help"}},
		"unknown flag":     {[]string{"demo", "--loud"}, exitUsage, []string{"--loud", "--help"}},
		"nothing to ask":   {[]string{"ask"}, exitUsage, []string{"ask", "--help"}},
		"nowhere to write": {[]string{"demo", "--fast", "--models", modelDirs[0], "--record", "/no/such/dir/x.wav"}, exitFailed, []string{"/no/such/dir/x.wav"}},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := execute(t.Context(), test.args, &stdout, &stderr)
			line := strings.TrimSpace(stderr.String())
			t.Log(line)
			if code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if strings.Contains(line, "\n") || stdout.Len() > 0 {
				t.Errorf("more than a line: %q, %q", stdout.String(), line)
			}
			for _, part := range test.want {
				if !strings.Contains(line, part) {
					t.Errorf("%q is not in it", part)
				}
			}
		})
	}
}

func TestAskAndWake(t *testing.T) {
	needDemo(t)
	var stdout, stderr bytes.Buffer
	code := execute(t.Context(), []string{"ask", "set", "a timer for ten minutes"}, &stdout, &stderr)
	if code != 0 || stdout.String() != "I can't do that here.\n" {
		t.Errorf("ask: exit code %d, %q, %q", code, stdout.String(), stderr.String())
	}
	stdout.Reset()
	code = execute(t.Context(), []string{"ask", "what is the meaning of life"}, &stdout, &stderr)
	if code != exitFailed || stdout.String() != "Sorry, I didn't catch that.\n" {
		t.Errorf("ask: exit code %d, %q, %q", code, stdout.String(), stderr.String())
	}

	data := "../../../shared/data/speech/wake/reference_tests/"
	if _, err := os.Stat(data); err != nil {
		t.Skip("no recordings: ", err)
	}
	stdout.Reset()
	code = execute(t.Context(), []string{"wake", "--models", modelDirs[0], "--words", "alexa,okay_nabu", data + "alexa_pymicro_1.flac", data + "hey_mycroft_pymicro_1.flac"}, &stdout, &stderr)
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	if code != 0 || len(lines) != 3 || !strings.Contains(lines[0], "alexa at 1.") || !strings.Contains(lines[1], "no alexa") || !strings.Contains(lines[2], "no okay_nabu") {
		t.Errorf("wake: exit code %d, %q", code, lines)
	}
}
