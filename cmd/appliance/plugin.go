package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"bellbird/clock"
	"bellbird/event"
	"bellbird/hooks"
	"bellbird/plugins"
	"bellbird/plugins/starlark"
	"bellbird/plugins/worker"
)

// Plugins are where plugins lie.
type Plugins struct {
	SystemDir string `toml:"system_dir"` // default /usr/share/bellbird/plugins
	UserDir   string `toml:"user_dir"`   // default /var/lib/bellbird/plugins
	StateDir  string `toml:"state_dir"`  // default /var/lib/bellbird/plugin-state
}

func (p *Plugins) setDefaults() {
	for dir, def := range map[*string]string{
		&p.SystemDir: "/usr/share/bellbird/plugins", &p.UserDir: "/var/lib/bellbird/plugins", &p.StateDir: "/var/lib/bellbird/plugin-state",
	} {
		if *dir == "" {
			*dir = def
		}
	}
}

// runtimes are what plugins can be written in. Those of the system run in this process, and those of the user in a worker.
type runtimes struct {
	system plugins.Runtime
	user   *worker.Host
}

func newRuntimes(log *slog.Logger) runtimes {
	return runtimes{
		system: starlark.Runtime{Logger: log},
		user: worker.New(worker.Options{Logger: log, Command: func() *exec.Cmd {
			self, err := os.Executable()
			if err != nil {
				self = os.Args[0]
			}
			cmd := exec.Command(self, workerName)
			cmd.Env = []string{} // nothing of ours is a worker's business
			cmd.Stderr = os.Stderr
			return cmd
		}}),
	}
}

// plug gives the appliance its hooks, and returns how to end them. The plugins come when it runs.
func (a *appliance) plug(p Plugins, clk clock.Clock, log *slog.Logger) (end func()) {
	log = log.With("part", "plugins")
	a.hooks = hooks.New(hooks.Options{
		Logger: log,
		OnBreaker: func(plugin, point string, d time.Duration) {
			a.bus.Publish(event.HookMissed{At: clk.Now(), Plugin: plugin, Point: point, For: d})
		},
	})
	r := newRuntimes(log)
	a.loader = plugins.New(r.options(p, a.hooks, log))
	return func() {
		a.hooks.Close()
		r.user.Close()
	}
}

// workerName is the command by which this program becomes a worker.
const workerName = "plugin-worker"

func workerCommand() *cobra.Command {
	return &cobra.Command{
		Use:    workerName,
		Short:  "Run plugins' scripts for the appliance that started this",
		Hidden: true,
		Args:   onlyArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := worker.Confine(worker.Memory); err != nil {
				return err
			}
			log := slog.New(slog.NewTextHandler(os.Stderr, nil))
			// It ends with its input, not with the signals that its terminal gets.
			return worker.Serve(context.WithoutCancel(cmd.Context()), os.Stdin, os.Stdout, log)
		},
	}
}

func pluginCommand(f *flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plugin",
		Short: "List, try and begin plugins",
		Args:  onlyArgs(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(pluginListCommand(f), pluginTestCommand(f), pluginNewCommand())
	return cmd
}

func pluginListCommand(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the plugins in the directories of the configuration, and what is wrong with them",
		Args:  onlyArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.load()
			if err != nil {
				return err
			}
			r := newRuntimes(slog.New(slog.DiscardHandler))
			defer r.user.Close()
			runner := hooks.New(hooks.Options{})
			defer runner.Close()
			l := plugins.New(r.options(c.Plugins, runner, f.logger(slog.LevelError)))
			if err := l.Scan(cmd.Context()); err != nil {
				return err
			}
			return listPlugins(cmd.OutOrStdout(), l.List())
		},
	}
}

func (r runtimes) options(p Plugins, runner *hooks.Runner, log *slog.Logger) plugins.Options {
	return plugins.Options{
		SystemDir: p.SystemDir, UserDir: p.UserDir, StateDir: p.StateDir, Runner: runner, Logger: log,
		SystemRuntimes: map[string]plugins.Runtime{".star": r.system},
		UserRuntimes:   map[string]plugins.Runtime{".star": r.user},
	}
}

func listPlugins(out io.Writer, list []plugins.Info) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(out, `There are no plugins. "bellbird plugin new NAME" begins one.`)
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "plugin\tversion\tstate\thooks\tdescription")
	for _, p := range list {
		state := "off"
		switch {
		case p.Loaded:
			state = "on"
		case p.Enabled:
			state = "failed"
		}
		if p.Band == hooks.System {
			state += ", system"
		}
		var points []string
		for point := range p.Manifest.Capabilities.Hooks {
			points = append(points, point)
		}
		if n := len(p.Manifest.Capabilities.VoiceCommands); n > 0 {
			points = append(points, fmt.Sprintf("%d voice commands", n))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", p.Manifest.Name, p.Manifest.Version, state, strings.Join(points, " "), p.Manifest.Description)
		for _, e := range p.Errors {
			fmt.Fprintf(w, "\t\t\t\t%s\n", e)
		}
	}
	return w.Flush()
}

func pluginTestCommand(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "test DIR...",
		Short: "Run plugins on their own trials, tests/*.json",
		Args:  onlyArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			r := newRuntimes(f.logger(slog.LevelError))
			defer r.user.Close()
			passed, failed := 0, 0
			for _, dir := range args {
				verdicts, err := plugins.Try(cmd.Context(), dir, map[string]plugins.Runtime{".star": r.user}, f.logger(slog.LevelError))
				if err != nil {
					return err
				}
				for _, v := range verdicts {
					result := "ok  "
					if len(v.Faults) > 0 {
						result = "FAIL"
						failed++
					} else {
						passed++
					}
					fmt.Fprintf(cmd.OutOrStdout(), "%s  %s: %s: %s\n", result, filepath.Base(dir), v.Point, v.Name)
					for _, fault := range v.Faults {
						fmt.Fprintf(cmd.OutOrStdout(), "      %s\n", fault)
					}
				}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d passed, %d failed\n", passed, failed)
			if failed > 0 {
				return errors.New("not all trials passed")
			}
			return nil
		},
	}
}

func pluginNewCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "new NAME",
		Short: "Begin a plugin: a directory with a manifest, a hook, and a trial of it",
		Args:  onlyArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := plugins.Scaffold(args[0]); err != nil {
				return &usageError{err}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is begun. Try it with: bellbird plugin test %s\n", filepath.Base(args[0]), args[0])
			return nil
		},
	}
}
