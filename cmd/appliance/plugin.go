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
	"slices"
	"time"

	"github.com/spf13/cobra"

	"bellbird/event"
	"bellbird/hooks"
	"bellbird/internal/run"
	"bellbird/pipeline"
	"bellbird/plugins"
	"bellbird/plugins/install"
	"bellbird/plugins/python"
	"bellbird/plugins/schedule"
	"bellbird/plugins/starlark"
	"bellbird/plugins/system"
	"bellbird/plugins/worker"
	"bellbird/tts"
	"bellbird/wake"
)

// Plugins are where plugins lie.
type Plugins struct {
	SystemDir string `toml:"system_dir"` // default /usr/share/bellbird/plugins
	UserDir   string `toml:"user_dir"`   // default /var/lib/bellbird/plugins
	StateDir  string `toml:"state_dir"`  // default /var/lib/bellbird/plugin-state

	Python  string   `toml:"python"`  // the interpreter of plugins in Python; default python3
	Sockets []string `toml:"sockets"` // plugins in Python that may connect by themselves, and not only have requests done

	install.Policy // of those that come from elsewhere

	own bool // the user's directory was named on the command line: it is one in which a developer works
}

func (p *Plugins) setDefaults(state string) {
	for dir, def := range map[*string]string{
		&p.Python: "python3", &p.SystemDir: "/usr/share/bellbird/plugins", &p.UserDir: filepath.Join(state, "plugins"), &p.StateDir: filepath.Join(state, "plugin-state"),
	} {
		if *dir == "" {
			*dir = def
		}
	}
}

// runtimes are what plugins can be written in. Those of the system run in this process, and those of the user in a worker;
// those in Python have a worker each.
type runtimes struct {
	system plugins.Runtime
	user   *worker.Host
	python *python.Runtime
}

func (r runtimes) Close() {
	r.user.Close()
	r.python.Close()
}

func newRuntimes(c Plugins, publish func(plugin, kind string, data any) error, log *slog.Logger) runtimes {
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
		python: python.New(python.Options{
			Logger: log, Python: c.Python, Publish: publish, Dir: func(o *plugins.Owner) string { return o.Dir },
			Launch: func(spec string) *exec.Cmd {
				self, err := os.Executable()
				if err != nil {
					self = os.Args[0]
				}
				cmd := exec.Command(self, pythonName, spec)
				cmd.Env = []string{}
				if zone := os.Getenv("TZ"); zone != "" {
					cmd.Env = append(cmd.Env, "TZ="+zone)
				}
				return cmd
			},
			Network: func(m *plugins.Manifest) python.Network {
				if slices.Contains(c.Sockets, m.Name) {
					return python.Sockets
				}
				return python.Requests
			},
		}),
	}
}

// pythonName is the command by which this program becomes the worker of a plugin in Python.
const pythonName = "plugin-python"

func pythonCommand() *cobra.Command {
	return &cobra.Command{
		Use:    pythonName + " SPEC",
		Short:  "Run a plugin in Python for the appliance that started this",
		Hidden: true,
		Args:   onlyArgs(cobra.ExactArgs(1)),
		RunE:   func(_ *cobra.Command, args []string) error { return python.Exec(args[0]) },
	}
}

// plug gives the appliance its hooks, and what plugins may use of it. The plugins come when it runs.
func (a *appliance) plug(c Config, s senses, model pipeline.Model, voice tts.Voice, log *slog.Logger) error {
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
	a.told = a.watchHooks()
	a.hooks = hooks.New(hooks.Options{
		System: granted, Private: a.store.Private, OnTrace: a.told, Logger: log,
		OnBreaker: func(plugin, point string, d time.Duration) {
			a.bus.Publish(event.HookMissed{At: a.clock.Now(), Plugin: plugin, Point: point, For: d})
		},
	})
	network := plugins.NewNetwork(log)
	r := newRuntimes(c.Plugins, func(plugin, kind string, data any) error {
		a.bus.Publish(event.PluginPublished{At: a.clock.Now(), Plugin: plugin, Kind: kind, Data: data})
		return nil
	}, log)
	a.onClose(r.Close)
	a.onClose(network.Close)
	a.onClose(a.hooks.Close) // the last of them may still want the worker
	a.onClose(p.close)
	o := r.options(c.Plugins, a.hooks, log)
	o.Web, o.Tools, o.Admit = network, a.tools.Put, c.Plugins.gate().Admit
	var known func() bool
	if s.sane != nil {
		known = rememberKnown(s.sane)
	}
	times := schedule.New(schedule.Options{Clock: a.clock, Known: known, Zone: func(t time.Time) time.Time { return t.In(a.zone()) }, Logger: log})
	o.Schedules, o.System = times.Put, granted
	a.more = append(a.more, run.Part{Name: "schedules", Run: times.Run})
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
		Short: "List, try, begin, follow, install and sign plugins",
		Args:  onlyArgs(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		pluginListCommand(f), pluginEnableCommand(f, true), pluginEnableCommand(f, false), pluginReloadCommand(f), pluginTraceCommand(f),
		pluginSettingsCommand(f), pluginTestCommand(f), pluginNewCommand(),
	)
	cmd.AddCommand(elsewhereCommands(f)...)
	return cmd
}

func (r runtimes) options(p Plugins, runner *hooks.Runner, log *slog.Logger) plugins.Options {
	return plugins.Options{
		Builtin: system.Files, SystemDir: p.SystemDir, UserDir: p.UserDir, StateDir: p.StateDir, Runner: runner, Logger: log,
		SystemRuntimes: map[string]plugins.Runtime{".star": r.system, ".py": r.python},
		UserRuntimes:   map[string]plugins.Runtime{".star": r.user, ".py": r.python},
	}
}

func pluginTestCommand(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "test DIR...",
		Short: "Run plugins on their own trials, tests/*.json",
		Args:  onlyArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			r := newRuntimes(Plugins{}, nil, f.logger(slog.LevelError))
			defer r.Close()
			passed, failed := 0, 0
			for _, dir := range args {
				verdicts, err := plugins.Try(cmd.Context(), dir, map[string]plugins.Runtime{".star": r.user, ".py": r.python}, f.logger(slog.LevelError))
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
