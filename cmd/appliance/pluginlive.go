package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"bellbird/api"
	"bellbird/hooks"
	"bellbird/plugins"
)

// The commands that look after the plugins of the running appliance. Without one they look after the directories that it
// will find when it begins.

// withPlugins calls f with the plugins: those of the running appliance, if there is one.
func (f *flags) withPlugins(ctx context.Context, do func(p api.Plugins, live bool) error) error {
	c, err := f.load()
	if err != nil {
		return err
	}
	remote := &remotePlugins{client: c.API.dial()}
	err = remote.load(ctx)
	switch {
	case err == nil:
		return do(remote, true)
	case !errors.Is(err, api.ErrNotRunning):
		return err
	}
	r := newRuntimes(c.Plugins, nil, slog.New(slog.DiscardHandler))
	defer r.Close()
	runner := hooks.New(hooks.Options{})
	defer runner.Close()
	o := r.options(c.Plugins, runner, f.logger(slog.LevelError+1)) // it is told in the list
	o.Admit = c.Plugins.gate().Admit
	l := plugins.New(o)
	if err := l.Scan(ctx); err != nil {
		return err
	}
	return do(&pluginControl{Loader: l}, false)
}

// remotePlugins are those of the running appliance.
type remotePlugins struct {
	client *api.Client
	list   []api.Plugin
}

func (p *remotePlugins) load(ctx context.Context) error {
	return p.client.Do(ctx, http.MethodGet, "/api/plugins", nil, &p.list)
}

func (p *remotePlugins) List() []api.Plugin { return p.list }

func (p *remotePlugins) SetEnabled(ctx context.Context, name string, enabled bool) error {
	return p.client.Do(ctx, http.MethodPut, pathf("/api/plugins/%s/enabled", name), enabled, nil)
}

func (p *remotePlugins) Reload(ctx context.Context, name string) error {
	return p.client.Do(ctx, http.MethodPost, pathf("/api/plugins/%s/reload", name), nil, nil)
}

func (p *remotePlugins) Rescan(ctx context.Context) error {
	return p.client.Do(ctx, http.MethodPost, "/api/plugins/rescan", nil, nil)
}

func pluginListCommand(f *flags) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the plugins, what their hooks did and cost, and what is wrong with them",
		Long: `List the plugins of the running appliance, what their hooks did and cost since it was started, and what is wrong with
them. If it isn't running, list those in its directories.`,
		Args: onlyArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.withPlugins(cmd.Context(), func(p api.Plugins, live bool) error {
				if asJSON {
					return json.NewEncoder(cmd.OutOrStdout()).Encode(p.List())
				}
				return listPlugins(cmd.OutOrStdout(), p.List(), live)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func listPlugins(out io.Writer, list []api.Plugin, live bool) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(out, `There are no plugins. "bellbird plugin new NAME" begins one.`)
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "plugin\tversion\tstate\tdescription")
	for _, p := range list {
		state := "off"
		switch {
		case p.Loaded:
			state = "on"
		case p.Enabled:
			state = "failed"
		}
		if p.System {
			state += ", system"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", p.Name, p.Version, state, p.Description)
		if p.Origin != "" && p.Origin != "built in" {
			fmt.Fprintf(w, "\t\t\t  %s\n", p.Origin)
		}
		if p.Commands > 0 {
			fmt.Fprintf(w, "\t\t\t  %d voice commands\n", p.Commands)
		}
		if len(p.Network) > 0 {
			fmt.Fprintf(w, "\t\t\t  may reach %s\n", strings.Join(p.Network, ", "))
		}
		if len(p.Tools) > 0 {
			fmt.Fprintf(w, "\t\t\t  tools: %s\n", strings.Join(p.Tools, ", "))
		}
		for _, h := range p.Hooks {
			switch {
			case !live:
				fmt.Fprintf(w, "\t\t\t  %s\n", h.Point)
			case h.Calls == 0:
				fmt.Fprintf(w, "\t\t\t  %s: not called yet\n", h.Point)
			default:
				fmt.Fprintf(w, "\t\t\t  %s: %d calls, %.1f ms on average, %.1f ms at worst, %d missed, %d failed\n",
					h.Point, h.Calls, h.Mean, h.Worst, h.Misses, h.Failures)
			}
			if h.Error != "" {
				fmt.Fprintf(w, "\t\t\t    last error: %s\n", h.Error)
			}
		}
		for _, e := range p.Errors {
			fmt.Fprintf(w, "\t\t\t  error: %s\n", e)
		}
	}
	if !live {
		fmt.Fprintln(w, "The appliance is not running; this is what it will find.")
	}
	return w.Flush()
}

func pluginEnableCommand(f *flags, enabled bool) *cobra.Command {
	word, past := "enable", "enabled"
	if !enabled {
		word, past = "disable", "disabled"
	}
	return &cobra.Command{
		Use:   word + " NAME...",
		Short: strings.ToUpper(word[:1]) + word[1:] + " plugins, now and from now on",
		Args:  onlyArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.withPlugins(cmd.Context(), func(p api.Plugins, live bool) error {
				for _, name := range args {
					if err := p.SetEnabled(cmd.Context(), name, enabled); err != nil {
						return err
					}
					when := ""
					if !live {
						when = " (the appliance is not running)"
					}
					fmt.Fprintf(cmd.OutOrStdout(), "%s is %s%s\n", name, past, when)
				}
				return nil
			})
		},
	}
}

func pluginReloadCommand(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "reload [NAME...]",
		Short: "Read plugins of the running appliance anew, or look for ones that came or went",
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := f.client()
			if err != nil {
				return err
			}
			p := &remotePlugins{client: client}
			if len(args) == 0 {
				return p.Rescan(cmd.Context())
			}
			for _, name := range args {
				if err := p.Reload(cmd.Context(), name); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s is loaded again\n", name)
			}
			return nil
		},
	}
}

func pluginTraceCommand(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "trace [NAME...]",
		Short: "Follow what the hooks of the running appliance do and cost",
		RunE: func(cmd *cobra.Command, names []string) error {
			client, err := f.client()
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			err = client.Events(cmd.Context(), "/api/events?kind=hook_fired", func(kind string, data []byte) error {
				return printFire(out, kind, data, names)
			}, nil)
			if cmd.Context().Err() != nil {
				return nil // the user has seen enough
			}
			return err
		},
	}
}

// printFire prints a line for each handler of a fire. With names, only of those plugins.
func printFire(out io.Writer, kind string, data []byte, names []string) error {
	if kind == "dropped" {
		_, err := fmt.Fprintf(out, "… %s lines lost\n", data)
		return err
	}
	var fired struct {
		At    time.Time
		Calls []struct {
			Point, Plugin, Outcome, Error string
			Took                          float64 `json:"took_ms"`
		}
	}
	if err := json.Unmarshal(data, &fired); err != nil {
		return err
	}
	for _, c := range fired.Calls {
		if len(names) > 0 && !slices.Contains(names, c.Plugin) {
			continue
		}
		line := fmt.Sprintf("%s  %-18s %-20s %8.2f ms  %s", fired.At.Local().Format("15:04:05.000"), c.Point, c.Plugin, c.Took, c.Outcome)
		if c.Error != "" {
			line += ": " + c.Error
		}
		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
	}
	return nil
}
