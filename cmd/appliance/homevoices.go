package main

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"time"

	"bellbird/mqtt"
)

// The choice of a voice, for Home Assistant.

// A namedVoice can be changed while it is used.
type namedVoice interface {
	SetVoice(name string) error
	Settings() (name string, speed float64)
}

// voiceChoice is one of these, and of the one that is in use now.
func voiceChoice(v namedVoice, names []string) *mqtt.Select {
	now, _ := v.Settings()
	if !slices.Contains(names, now) {
		names = append([]string{now}, names...)
	}
	return &mqtt.Select{
		Options: func() []string { return names },
		Get:     func() string { name, _ := v.Settings(); return name },
		Set:     v.SetVoice,
	}
}

// espeakVoices are the names of those voices of espeak-ng that speak a language and need nothing else to be installed. If
// it doesn't tell there are none.
func espeakVoices(ctx context.Context, command, language string) []string {
	if command == "" {
		command = "espeak-ng"
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, command, "--voices="+language).Output()
	if err != nil {
		return nil
	}
	return voiceNames(string(out))
}

// voiceNames reads espeak-ng's list: priority, language, age and gender, name, file. The language is what a voice is
// chosen by. Those whose file is in mb/ need another program.
func voiceNames(list string) []string {
	var names []string
	for line := range strings.Lines(list) {
		f := strings.Fields(line)
		if len(f) < 5 || f[0] == "Pty" || strings.HasPrefix(f[4], "mb/") || strings.HasPrefix(f[4], "!v/") {
			continue
		}
		names = append(names, f[1])
	}
	slices.Sort(names)
	return slices.Compact(names)
}
