package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"bellbird/event"
	"bellbird/hooks"
	"bellbird/pipeline"
	"bellbird/plugins"
	"bellbird/plugins/starlark"
	"bellbird/plugins/system"
	"bellbird/plugins/worker"
	"bellbird/tts/espeak"
	"bellbird/wake"
)

// Plugins are where plugins lie.
type Plugins struct {
	SystemDir string `toml:"system_dir"` // default /usr/share/bellbird/plugins
	UserDir   string `toml:"user_dir"`   // default /var/lib/bellbird/plugins
	StateDir  string `toml:"state_dir"`  // default /var/lib/bellbird/plugin-state
}

func (p *Plugins) setDefaults(state string) {
	for dir, def := range map[*string]string{
		&p.SystemDir: "/usr/share/bellbird/plugins", &p.UserDir: filepath.Join(state, "plugins"), &p.StateDir: filepath.Join(state, "plugin-state"),
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
			cmd.Env = []string{} // nothing of ours is a worker's business, but what time it is
			if zone := os.Getenv("TZ"); zone != "" {
				cmd.Env = append(cmd.Env, "TZ="+zone)
			}
			cmd.Stderr = os.Stderr
			return cmd
		}}),
	}
}

// plug gives the appliance its hooks, and what plugins may use of it. The plugins come when it runs.
func (a *appliance) plug(c Config, s senses, model pipeline.Model, voice *espeak.Voice, log *slog.Logger) error {
	log = log.With("part", "plugins")
	p := &powers{
		voice: voice, turns: laterTurns{a}, speaking: func() bool { return a.output.Queued() > 0 }, silence: func() { a.timers.Silence() },
		chats: storedChats{a.store}, model: model, tools: a.tools, volume: loudness{a.output, a.bus, a.clock}, log: log,
	}
	if s.body != nil {
		p.ring = laterRing{a}
	}
	if s.ears {
		p.ears, p.wakeSwitch, p.sttSwitch = laterEars{a}, &a.wakes, &a.recognises
		for _, w := range c.Wake.All() {
			if w.Action != wake.Stop {
				p.wakeWords = append(p.wakeWords, w.Name)
			}
		}
	}
	granted, err := p.system()
	if err != nil {
		return err
	}
	a.hooks = hooks.New(hooks.Options{
		System: granted, Private: a.store.Private, OnTrace: a.watchHooks(), Logger: log,
		OnBreaker: func(plugin, point string, d time.Duration) {
			a.bus.Publish(event.HookMissed{At: a.clock.Now(), Plugin: plugin, Point: point, For: d})
		},
	})
	network := plugins.NewNetwork(log)
	r := newRuntimes(log)
	a.onClose(r.user.Close)
	a.onClose(network.Close)
	a.onClose(a.hooks.Close) // the last of them may still want the worker
	a.onClose(p.close)
	o := r.options(c.Plugins, a.hooks, log)
	o.Web, o.Tools = network, a.tools.Put
	dir := c.Plugins.StateDir
	if !s.lasting || a.forgetful {
		dir = "" // what is taken over into a store that is forgotten would be lost
	}
	keepPlugins(&o, a.store, dir, log)
	a.loader = plugins.New(o)
	return nil
}

// workerName is the command by which this program becomes a worker.
const workerName = "plugin-worker"

func workerCommand() *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use:    workerName,
		Short:  "Run plugins' scripts for the appliance that started this",
		Hidden: true,
		Args:   onlyArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			parts, err := worker.Sandbox(worker.Memory)
			if err != nil {
				return err
			}
			if check {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(parts)
			}
			log := slog.New(slog.NewTextHandler(os.Stderr, nil))
			for _, p := range parts {
				if p.Missing != "" {
					log.Warn("the plugin worker's sandbox lacks a part", "part", p.Name, "why", p.Missing)
				}
			}
			// It ends with its input, not with the signals that its terminal gets.
			return worker.Serve(context.WithoutCancel(cmd.Context()), os.Stdin, os.Stdout, log)
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "only tell how it is confined")
	return cmd
}

func pluginCommand(f *flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plugin",
		Short: "List, try, begin and follow plugins",
		Args:  onlyArgs(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		pluginListCommand(f), pluginEnableCommand(f, true), pluginEnableCommand(f, false), pluginReloadCommand(f), pluginTraceCommand(f),
		pluginSettingsCommand(f), pluginTestCommand(f), pluginNewCommand(),
	)
	return cmd
}

func (r runtimes) options(p Plugins, runner *hooks.Runner, log *slog.Logger) plugins.Options {
	return plugins.Options{
		Builtin: system.Files, SystemDir: p.SystemDir, UserDir: p.UserDir, StateDir: p.StateDir, Runner: runner, Logger: log,
		SystemRuntimes: map[string]plugins.Runtime{".star": r.system},
		UserRuntimes:   map[string]plugins.Runtime{".star": r.user},
	}
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
