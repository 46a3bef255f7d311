package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"bellbird/api"
	"bellbird/plugins"
	"bellbird/store"
)

// What plugins keep lies in the store, and how the user set them beside it.

// keepPlugins gives plugins their states and rows. A state that an earlier version kept in a file in dir is taken over when
// it is first asked for; "" if there is none, or if the store itself is one that will be forgotten.
func keepPlugins(o *plugins.Options, s *store.Store, dir string, log *slog.Logger) {
	o.Private = s.Private
	o.State = func(plugin string) plugins.State {
		if dir != "" && plugin+".json" != plugins.ChoiceName { // that one says which plugins are enabled
			if err := takeOverState(s, plugin, filepath.Join(dir, plugin+".json")); err != nil {
				log.Error("what a plugin kept in a file can't be taken over", "plugin", plugin, "err", err)
			}
		}
		return s.State(plugin)
	}
	// Handlers have a few tens of milliseconds, of which a commit on a slow card would take all. So their rows are
	// committed within the batch delay: a power cut loses the last second of them.
	o.Rows = func(plugin string) plugins.Rows { return pluginRows{s.Rows(plugin).Batched()} }
}

// takeOverState takes over a state from a file. One that can't be read is set aside.
func takeOverState(s *store.Store, plugin, path string) error {
	_, err := s.ImportState(plugin, path)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	if errors.As(err, &syntax) || errors.As(err, &kind) {
		err = errors.Join(err, os.Rename(path, path+".bad"))
	}
	return err
}

// pluginRows are a plugin's rows in the store.
type pluginRows struct{ *store.Rows }

var _ plugins.Rows = pluginRows{}

func (r pluginRows) Meta(chat, key string) (plugins.RowsMeta, bool) {
	m, ok := r.Rows.Meta(chat, key)
	return plugins.RowsMeta(m), ok
}

// Settings shows the settings of a plugin to the socket. What is a secret stays here.
func (p *pluginControl) Settings(_ context.Context, name string) (any, error) {
	list, err := p.Loader.Settings(name)
	if err != nil {
		return nil, refusal(err)
	}
	for i := range list {
		if list[i].Widget == "password" && list[i].Set {
			list[i].Value = "(set)"
		}
	}
	return list, nil
}

// SetSettings changes settings of a plugin; nil is the default.
func (p *pluginControl) SetSettings(_ context.Context, name string, values map[string]any) error {
	err := p.Loader.SetSettings(name, values)
	if err == nil || errors.Is(err, plugins.ErrUnknown) {
		return refusal(err)
	}
	return api.Errorf(http.StatusBadRequest, "%v", err)
}

func (p *remotePlugins) Settings(ctx context.Context, name string) (any, error) {
	var list []plugins.SettingValue
	err := p.client.Do(ctx, http.MethodGet, pathf("/api/plugins/%s/settings", name), nil, &list)
	return list, err
}

func (p *remotePlugins) SetSettings(ctx context.Context, name string, values map[string]any) error {
	return p.client.Do(ctx, http.MethodPut, pathf("/api/plugins/%s/settings", name), values, nil)
}

func pluginSettingsCommand(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "settings NAME [KEY=VALUE...]",
		Short: "Show the settings of a plugin, or change some, now and from now on",
		Long: `Show the settings of a plugin, or change some, now and from now on. "KEY=" is the default again. The parts of a list
have commas between them. Of a plugin that shows itself on some surfaces only, surfaces=chat,game chooses them.`,
		Args: onlyArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.withPlugins(cmd.Context(), func(p api.Plugins, _ bool) error {
				return changeSettings(cmd.Context(), cmd.OutOrStdout(), p, args[0], args[1:])
			})
		},
	}
}

// changeSettings changes settings as the arguments say, and shows all.
func changeSettings(ctx context.Context, out io.Writer, s api.Plugins, name string, args []string) error {
	all, err := s.Settings(ctx, name)
	if err != nil {
		return err
	}
	list, _ := all.([]plugins.SettingValue)
	values := make(map[string]any)
	for _, arg := range args {
		key, text, ok := strings.Cut(arg, "=")
		i := slices.IndexFunc(list, func(v plugins.SettingValue) bool { return v.Key == key })
		switch {
		case !ok:
			return &usageError{fmt.Errorf("%q: write KEY=VALUE", arg)}
		case i < 0:
			return &usageError{fmt.Errorf("%s has no setting %q", name, key)}
		case text == "":
			values[key] = nil
			continue
		}
		if values[key], err = list[i].Parse(text); err != nil {
			return &usageError{err}
		}
	}
	if len(values) > 0 {
		if err := s.SetSettings(ctx, name, values); err != nil {
			return err
		}
		if all, err = s.Settings(ctx, name); err != nil {
			return err
		}
		list, _ = all.([]plugins.SettingValue)
	}
	if len(list) == 0 {
		_, err := fmt.Fprintf(out, "%s has no settings.\n", name)
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, v := range list {
		value, err := json.Marshal(v.Value)
		if err != nil {
			return err
		}
		mark := ""
		if !v.Set {
			mark = " (default)"
		}
		fmt.Fprintf(w, "%s\t%s%s\t%s\n", v.Key, value, mark, v.Label)
	}
	return w.Flush()
}
