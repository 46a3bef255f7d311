package espeak

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os/exec"
	"strconv"
	"strings"
	"sync"
)

// What espeak-ng does when it isn't told otherwise, and what it can do.
const (
	usualVoice = "en-us"
	usualPace  = 175 // words per minute
	slowest    = 80
	fastest    = 450
	usualPitch = 50
	highest    = 99
)

// A sound is how a voice sounds. It may change between two texts.
type sound struct {
	usual Options // as configured, with the defaults filled in

	mu           sync.Mutex
	voice        string // "": as configured
	speed, pitch float64
	there        map[string]bool // voices that the program was asked for, and has
}

const maxThere = 100

func newSound(o Options) *sound {
	o.Voice, o.WordsPerMinute, o.Pitch = cmp.Or(o.Voice, usualVoice), cmp.Or(o.WordsPerMinute, usualPace), cmp.Or(o.Pitch, usualPitch)
	return &sound{usual: o, speed: 1, pitch: 1, there: make(map[string]bool)}
}

func (s *sound) args() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	pace := min(max(math.Round(float64(s.usual.WordsPerMinute)*s.speed), slowest), fastest)
	pitch := min(max(math.Round(float64(s.usual.Pitch)*s.pitch), 1), highest)
	return []string{
		"-b", "1", "-v", cmp.Or(s.voice, s.usual.Voice), "-s", strconv.Itoa(int(pace)), "-p", strconv.Itoa(int(pitch)), "--stdin", "--stdout",
	}
}

// SetVoice chooses a voice for the texts to come, by its name; "" is the configured one. One that isn't there is an error,
// and then nothing changes.
func (v *Voice) SetVoice(name string) error {
	if err := v.check(name); err != nil {
		return err
	}
	v.sound.mu.Lock()
	defer v.sound.mu.Unlock()
	v.sound.voice = name
	return nil
}

// check asks the program whether it has a voice, once: that takes it as long as a word does.
func (v *Voice) check(name string) error {
	switch {
	case name == "":
		return nil
	case strings.HasPrefix(name, "-"):
		return fmt.Errorf("voice: %q is not the name of a voice: see %s --voices", name, v.name)
	}
	s := v.sound
	s.mu.Lock()
	there := s.there[name]
	s.mu.Unlock()
	if there {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), v.wait)
	defer cancel()
	if out, err := exec.CommandContext(ctx, v.path, "-q", "-v", name, "a").CombinedOutput(); err != nil {
		return fmt.Errorf("voice: there is no voice %q: see %s --voices (%v: %s)", name, v.name, err, strings.TrimSpace(string(out[:min(len(out), maxFault)])))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.there) < maxThere {
		s.there[name] = true
	}
	return nil
}

// The factors by which the configured speed and pitch can be changed.
const (
	leastFactor = 0.25
	mostFactor  = 4
)

// SetSpeed makes the texts to come slower or faster than configured, by a factor of 0.25 to 4.
func (v *Voice) SetSpeed(factor float64) error { return v.factor(&v.sound.speed, "speed", factor) }

// SetPitch makes the voice lower or higher than configured, by a factor of 0.25 to 4.
func (v *Voice) SetPitch(factor float64) error { return v.factor(&v.sound.pitch, "pitch", factor) }

func (v *Voice) factor(which *float64, name string, factor float64) error {
	if !(factor >= leastFactor && factor <= mostFactor) { // NaN is out, too
		return fmt.Errorf("voice: %s %v: it goes from %v to %v, 1 being as configured", name, factor, leastFactor, mostFactor)
	}
	v.sound.mu.Lock()
	defer v.sound.mu.Unlock()
	*which = factor
	return nil
}

// Settings are the name of the voice and its speed, as a factor of the configured one.
func (v *Voice) Settings() (name string, speed float64) {
	v.sound.mu.Lock()
	defer v.sound.mu.Unlock()
	return cmp.Or(v.sound.voice, v.sound.usual.Voice), v.sound.speed
}

// Named is the same voice, with its present speed and pitch, under another name; an error if there is none of it.
func (v *Voice) Named(name string) (*Voice, error) {
	if err := v.check(name); err != nil {
		return nil, err
	}
	v.sound.mu.Lock()
	defer v.sound.mu.Unlock()
	other := *v
	other.sound = &sound{usual: v.sound.usual, voice: name, speed: v.sound.speed, pitch: v.sound.pitch, there: make(map[string]bool)}
	return &other, nil
}
