package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"bellbird/gpio/led"
	"bellbird/gpio/ring"
)

func ringCommand() *cobra.Command {
	var path string
	count := 12
	cmd := &cobra.Command{
		Use:   "ring",
		Short: "Show what the LED ring can show",
		Long: `List what the LED ring can show, from the top of the ladder: of what holds at the same time the first shows. Mute is
shown over all of it. With --png, draw it: six moments of each, from left to right.`,
		Args: onlyArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if count < 1 || count > led.MaxCount {
				return usagef("--leds %d: there can be 1 to %d", count, led.MaxCount)
			}
			if path == "" {
				return listRungs(cmd.OutOrStdout(), count)
			}
			if err := writeFile(path, func(w io.Writer) error { return ring.Sheet(w, count) }); err != nil {
				return err
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "The ring's ladder is in %s.\n", path)
			return err
		},
	}
	cmd.Flags().StringVar(&path, "png", "", "write a picture to this file instead")
	cmd.Flags().IntVar(&count, "leds", count, "how many LEDs the ring has")
	return cmd
}

// listRungs prints the ladder, with a moment of each rung.
func listRungs(w io.Writer, count int) error {
	colors := newScreen(w, time.Time{}).color
	look := func(s ring.Scene) string {
		s.Elapsed, s.Level = 80*time.Millisecond, 0.6
		s.Args = ring.Args{
			Fraction: 0.7, Kind: "model", Left: 2 * time.Minute, Total: 3 * time.Minute, Color: led.Color{R: 255, G: 190, B: 110}, Effect: ring.Solid,
		}
		leds := make([]led.Color, count)
		ring.Draw(leds, s)
		return ring.Terminal(leds, colors)
	}
	if _, err := fmt.Fprintf(w, "%s  %-14s  the microphone is muted: over all that follows\n", look(ring.Scene{Rung: ring.Idle, Muted: true}), "muted"); err != nil {
		return err
	}
	for _, r := range ring.Rungs() {
		lasts := ""
		if d := r.Lasts(); d > 0 {
			lasts = fmt.Sprintf(" (%v at most)", d)
		}
		if _, err := fmt.Fprintf(w, "%s  %-14s  %s%s\n", look(ring.Scene{Rung: r}), r, r.What(), lasts); err != nil {
			return err
		}
	}
	return nil
}

// writeFile writes a file, which appears only when it is complete.
func writeFile(path string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".bellbird-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
