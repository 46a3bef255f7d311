package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"bellbird/audio"
	"bellbird/audio/malgo"
	"bellbird/intents"
	"bellbird/stt/pocketsphinx"
	"bellbird/tts/espeak"
	"bellbird/wake"
)

func checkCommand(f *flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Say what is there, what is missing, and what to do about it",
		Args:  onlyArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.load()
			if err != nil {
				return err
			}
			if bad := check(cmd.Context(), cmd.OutOrStdout(), f, c); bad > 0 {
				return fmt.Errorf("%d of the checks failed", bad)
			}
			return nil
		},
	}
	cmd.AddCommand(checkAudioCommand(f))
	return cmd
}

// check tries what the appliance needs, one line each, and returns how many are missing.
func check(ctx context.Context, w io.Writer, f *flags, c Config) (missing int) {
	line := func(what, found string, err error) {
		if err != nil {
			missing++
			fmt.Fprintf(w, "MISSING  %-14s %v\n", what, err)
			return
		}
		fmt.Fprintf(w, "ok       %-14s %s\n", what, found)
	}

	path := f.config
	if path == "" {
		path = defaultConfig + ", or none"
	}
	line("configuration", path, nil)

	_, err := wake.New(c.Wake)
	line("wake words", wakeWords(c)+" from "+strings.Join(c.Wake.ModelDirs, ", "), err)

	grammar, err := intents.English()
	if err == nil {
		var r *pocketsphinx.Recognizer
		if r, err = pocketsphinx.New(c.STT.Options, pocketsphinx.Grammar(grammar.Grammar())); err == nil {
			r.Close()
		}
	}
	line("recogniser", "pocketsphinx, with the grammar of the offline agent", err)

	line("voice", "espeak-ng", speaks(ctx, c.TTS.Options))
	for _, far := range remotes(c) {
		found, err := far.found(ctx)
		line(far.what, found, err)
	}
	line("store", c.Store.Path, keeps(c.Store))
	found, err := thinks(ctx, c.Model)
	line("model", found, err)
	for _, o := range c.MCP {
		found, err := connects(ctx, o)
		line("MCP "+o.Name, found, err)
	}
	found, err = confined(ctx)
	line("plugin sandbox", found, err)

	capture, playback, err := malgo.Devices(c.Sound.Backend)
	names := func(devices []malgo.Device, none string) (string, error) {
		if err != nil {
			return "", err
		}
		if len(devices) == 0 {
			return "", errors.New(none)
		}
		var all []string
		for _, d := range devices {
			name := fmt.Sprintf("%q", d.Name)
			if d.Default {
				name += " (default)"
			}
			all = append(all, name)
		}
		return strings.Join(all, ", "), nil
	}
	var merr, serr error
	found, merr = names(capture, `no microphone found: plug one in, and see "arecord -l"`)
	line("microphone", found, merr)
	found, serr = names(playback, `no loudspeaker found: plug one in, and see "aplay -l"`)
	line("loudspeaker", found, serr)

	skip := func(what, why string) { fmt.Fprintf(w, "skipped  %-14s %s\n", what, why) }
	if err := reportBody(c.Body, line, skip); err != nil {
		line("body", "", err)
	}

	if missing > 0 && (merr != nil || serr != nil) {
		fmt.Fprintln(w, `Without a sound card, "bellbird demo" runs the appliance on a virtual device.`)
	}
	return missing
}

// speaks tries the voice.
func speaks(ctx context.Context, o espeak.Options) error {
	voice, err := espeak.New(o)
	if err != nil {
		return err
	}
	frames := 0
	if err := voice.Synthesize(ctx, "ready", func(audio.Frame) error { frames++; return nil }); err != nil {
		return err
	}
	if frames == 0 {
		return errors.New("the voice makes no sound")
	}
	return nil
}
