package gpio_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/event"
	body "bellbird/gpio"
	"bellbird/gpio/led"
)

// The keys of the virtual panel do what they say.
func TestPanel(t *testing.T) {
	tests := map[rune]string{
		' ': "press", 'd': "double", 't': "triple", 'l': "long", 'm': "muted true", 'M': "", '+': "turned 1", '-': "turned -1",
	}
	for key, want := range tests {
		synctest.Test(t, func(t *testing.T) {
			var k kept
			panel := body.NewPanel()
			var mu sync.Mutex
			var top led.Color
			var frames int
			bus := new(event.Bus)
			options := k.options()
			options.Changed = func(e event.MuteChanged) { bus.Publish(e) }
			m, err := body.NewMute(options)
			if err != nil {
				t.Fatal(err)
			}
			o := panel.Fit(body.Options{Bus: bus, Mute: m, Lights: func(frame []led.Color) error {
				mu.Lock()
				defer mu.Unlock()
				top, frames = frame[0], frames+1
				return nil
			}})
			b, err := body.Open(o)
			if err != nil {
				t.Fatal(err)
			}
			facts := bus.Subscribe(100)
			ctx, stop := context.WithCancel(t.Context())
			keys := make(chan rune)
			var parts sync.WaitGroup
			parts.Go(func() { _ = b.Run(ctx) })
			parts.Go(func() { _ = panel.Run(ctx, keys) })
			synctest.Wait()
			keys <- key
			time.Sleep(3 * time.Second)
			mu.Lock()
			if frames == 0 || key == 'm' != (top.R > 0 && top.G == 0) {
				t.Errorf("%q: %d frames, at the top %v", key, frames, top)
			}
			mu.Unlock()
			stop()
			parts.Wait()
			facts.Close()
			var got []string
			for f := range facts.C {
				switch f := f.(type) {
				case event.ButtonPressed:
					got = append(got, string(f.Gesture))
				case event.DialTurned:
					got = append(got, fmt.Sprint("turned ", f.Steps))
				case event.MuteChanged:
					got = append(got, fmt.Sprint("muted ", f.Muted))
				}
			}
			if s := strings.Join(got, " "); s != want {
				t.Errorf("%q: %s, want %s", key, s, want)
			}
		})
	}
}
