package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"bellbird/audio"
	"bellbird/audio/audiotest"
	"bellbird/clock"
	"bellbird/event"
	"bellbird/internal/run"
	"bellbird/wake"
)

func benchCommand(f *flags) *cobra.Command {
	var binary, oww string
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure this machine as an appliance",
		Long: `Measure this machine as an appliance, and print each figure beside its target. It takes about a minute. Nothing fails
because it is slow.`,
		Args: onlyArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.load()
			if err != nil {
				return err
			}
			return bench(cmd.Context(), c, binary, oww, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&oww, "openwakeword", "", "also measure the openWakeWord models in this directory")
	cmd.Flags().StringVar(&binary, "binary", "", "also tell the size of this binary")
	return cmd
}

// A figure is one row of the table.
type figure struct{ what, value, target string }

func bench(ctx context.Context, c Config, binary, oww string, stdout, progress io.Writer) error {
	var table []figure
	for _, measure := range []struct {
		what string
		run  func() ([]figure, error)
	}{
		{"wake engine", func() ([]figure, error) { return benchWake(c) }},
		{"openWakeWord", func() ([]figure, error) { return benchOpenWakeWord(oww) }},
		{"frame hand-over", func() ([]figure, error) { return benchHandOver(), nil }},
		{"turns", func() ([]figure, error) { return benchTurns(ctx, c) }},
		{"hooks", func() ([]figure, error) { return benchHooks(ctx) }},
		{"start and memory", func() ([]figure, error) { return benchStart(ctx, c) }},
		{"binary", func() ([]figure, error) { return benchBinary(binary) }},
	} {
		fmt.Fprintf(progress, "measuring: %s\n", measure.what)
		rows, err := measure.run()
		if err != nil {
			return fmt.Errorf("%s: %w", measure.what, err)
		}
		table = append(table, rows...)
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "what\tmeasured\ttarget")
	for _, r := range table {
		fmt.Fprintf(w, "%s\t%s\t%s\n", r.what, r.value, r.target)
	}
	return w.Flush()
}

// steps is about ten minutes of sound.
const steps = 20000

func benchWake(c Config) ([]figure, error) {
	var rows []figure
	sets := [][]string{{"okay_nabu"}, {"okay_nabu", "alexa", "hey_jarvis"}}
	if _, err := wake.FindModel("vad", c.Wake.ModelDirs); err == nil {
		sets = append(sets, []string{"okay_nabu", "alexa", "hey_jarvis", "vad"})
	}
	for _, words := range sets {
		var detectors []*wake.Detector
		for _, word := range words {
			m, err := wake.FindModel(word, c.Wake.ModelDirs)
			if err != nil {
				return nil, err
			}
			d, err := wake.NewDetector(m, 0)
			if err != nil {
				return nil, err
			}
			detectors = append(detectors, d)
		}
		front := wake.NewFrontend(10 * time.Millisecond)
		var slice audio.Frame
		for i := range slice {
			slice[i] = int16(i*i*37%4001) - 2000
		}
		var features wake.Features
		tenMillis := slice[:audio.FrameSize/2]
		step := func() {
			for range 3 { // a step is 30 ms, three slices of features
				if front.Write(tenMillis, &features) {
					for _, d := range detectors {
						d.Write(&features)
					}
				}
			}
		}
		for range 100 {
			step()
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		for range steps {
			step()
		}
		took := time.Since(began) / steps
		runtime.ReadMemStats(&after)
		what := fmt.Sprintf("wake engine, step of 30 ms, %d model", len(words))
		if len(words) > 1 {
			what += "s"
		}
		rows = append(rows, figure{
			what, fmt.Sprintf("%d ns, %.2f %% of real time, %.2f allocations", took.Nanoseconds(),
				100*took.Seconds()/0.030, float64(after.Mallocs-before.Mallocs)/steps), "0 allocations",
		})
	}
	return rows, nil
}

// benchOpenWakeWord measures a step of 80 ms with the first of the words in dir.
func benchOpenWakeWord(dir string) ([]figure, error) {
	if dir == "" {
		return nil, nil
	}
	names := wake.OpenWakeWordNames(dir)
	if len(names) == 0 {
		return nil, fmt.Errorf("there are no openWakeWord models in %s", dir)
	}
	embedder, err := wake.LoadEmbedder(dir)
	if err != nil {
		return nil, err
	}
	word, err := wake.LoadOpenWakeWord(dir, names[0], 0)
	if err != nil {
		return nil, err
	}
	samples := make([]int16, 1280)
	for i := range samples {
		samples[i] = int16(i*i*37%4001) - 2000
	}
	const steps = 1000
	began := time.Now()
	for range steps {
		if embedder.Write(samples) {
			word.Write(embedder.Embedding())
		}
	}
	took := time.Since(began) / steps
	return []figure{{
		"openWakeWord, step of 80 ms, " + names[0],
		fmt.Sprintf("%d ns, %.2f %% of real time", took.Nanoseconds(), 100*took.Seconds()/0.080), "15 % of a 1-GIPS core",
	}}, nil
}

func benchHandOver() []figure {
	out := audio.NewOutput(0)
	frames := make(chan audio.Frame, 64)
	var f audio.Frame
	const n = 100000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	for range n {
		select {
		case frames <- f:
		default:
		}
		<-frames
		out.Pull(&f)
	}
	took := time.Since(began) / n
	runtime.ReadMemStats(&after)
	return []figure{{
		"frame hand-over, microphone and speaker",
		fmt.Sprintf("%d ns, %.2f allocations", took.Nanoseconds(), float64(after.Mallocs-before.Mallocs)/n), "0 allocations",
	}}
}

const benchRounds = 7

// benchTurns has a user ask for the time, in real time, and looks at the records of the turns.
func benchTurns(ctx context.Context, c Config) ([]figure, error) {
	var p probe
	a, err := assemble(c, senses{ears: true, timers: true, measure: &p}, clock.System, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	u, err := newUser("", c.TTS.Options)
	if err != nil {
		a.close()
		return nil, err
	}
	u.room, u.facts = audiotest.NewRoom(audiotest.RoomOptions{Output: a.output, Script: u.script}), a.bus.Subscribe(1024)
	records := a.bus.Subscribe(1024)
	var total, own []time.Duration
	err = a.run(ctx, u.room, run.Part{Name: "user", Run: func(ctx context.Context) error {
		defer close(u.gone)
		for range benchRounds {
			if err := u.pause(ctx, time.Second); err != nil {
				return err
			}
			if err := u.order(ctx, u.orders[0]); err != nil {
				return err
			}
			engines := p.take()
			for len(records.C) > 0 {
				if e, ok := (<-records.C).(event.TurnEnded); ok && e.Record.Outcome == event.Completed {
					st := e.Record.Stages
					total = append(total, time.Duration(st.FirstSound-st.Voiced))
					own = append(own, time.Duration(st.FirstSound-st.Endpoint)-engines)
				}
			}
		}
		return run.ErrFinished
	}})
	if err != nil {
		return nil, err
	}
	if len(own) == 0 {
		return nil, errors.New("no turn was completed")
	}
	return []figure{
		{"last word to first sound, pipeline's own share, median", median(own).Round(100 * time.Microsecond).String(), "30ms"},
		{"last word to first sound, offline engines and endpoint silence, median", median(total).Round(time.Millisecond).String(), "-"},
	}, nil
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// benchStart starts this program as an appliance on a sound card that is not there, and looks at the process.
func benchStart(ctx context.Context, c Config) ([]figure, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "bellbird-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	config := filepath.Join(dir, "config.toml")
	text := fmt.Sprintf("[sound]\nbackend = \"null\"\n[api]\nsocket = %q\n", filepath.Join(dir, "socket"))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	var starts []time.Duration
	var resident int
	for i := range 5 {
		cmd := exec.CommandContext(ctx, self, "run", "--config", config, "--state", filepath.Join(dir, "state"), "--models", strings.Join(c.Wake.ModelDirs, ","))
		stderr, err := cmd.StderrPipe()
		if err != nil {
			return nil, err
		}
		began := time.Now()
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		listening := false
		lines := bufio.NewScanner(stderr)
		for !listening && lines.Scan() {
			listening = strings.Contains(lines.Text(), `msg="sound device opened"`) && strings.Contains(lines.Text(), "side=microphone")
		}
		starts = append(starts, time.Since(began))
		if i == 0 && listening {
			select { // let it listen for a while
			case <-time.After(5 * time.Second):
			case <-ctx.Done():
			}
			resident, err = residentKB(cmd.Process.Pid)
		}
		err = errors.Join(err, cmd.Process.Signal(os.Interrupt))
		go io.Copy(io.Discard, stderr)
		err = errors.Join(err, cmd.Wait())
		if !listening {
			return nil, fmt.Errorf("the appliance did not start: %w", err)
		}
		if err != nil {
			return nil, err
		}
	}
	return []figure{
		{"cold start to listening, median of 5", median(starts).Round(time.Millisecond).String(), "500ms"},
		{"resident memory while listening", fmt.Sprintf("%.1f MB", float64(resident)/1024), "60 MB"},
	}, nil
}

func residentKB(pid int) (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "VmRSS:" {
			return strconv.Atoi(fields[1])
		}
	}
	return 0, errors.New("no VmRSS in /proc")
}

func benchBinary(path string) ([]figure, error) {
	if path == "" {
		return nil, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	return []figure{{"size of " + filepath.Base(path), fmt.Sprintf("%.1f MB", float64(info.Size())/1e6), "20 MB"}}, nil
}
