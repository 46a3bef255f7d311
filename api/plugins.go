package api

import (
	"context"
	"net/http"
	"slices"
)

// Plugins are those that the appliance found.
type Plugins interface {
	List() []Plugin
	// SetEnabled enables a plugin, or disables it. The choice lasts.
	SetEnabled(ctx context.Context, name string, enabled bool) error
	// Reload reads a plugin anew. If that fails, the old one goes on.
	Reload(ctx context.Context, name string) error
	// Settings lists the settings of a plugin, as JSON can show them; SetSettings changes some, nil to their defaults.
	Settings(ctx context.Context, name string) (any, error)
	SetSettings(ctx context.Context, name string, values map[string]any) error
	// Rescan finds plugins that came or went.
	Rescan(ctx context.Context) error
}

// A Plugin is what there is to know of one.
type Plugin struct {
	Name        string   `json:"name"`
	Version     string   `json:"version,omitempty"`
	Description string   `json:"description,omitempty"`
	System      bool     `json:"system"` // it came with the appliance
	Enabled     bool     `json:"enabled"`
	Loaded      bool     `json:"loaded"`
	Commands    int      `json:"voice_commands"`
	Network     []string `json:"network,omitempty"` // the hosts that it may reach
	Origin      string   `json:"origin,omitempty"`  // "built in", "official", "signed by …", "unsigned", "unknown author" or "tampered"
	Errors      []string `json:"errors,omitempty"`  // of the last attempt to load it
	Tools       []string `json:"tools,omitempty"`   // that the model has of it
	Hooks       []Hook   `json:"hooks,omitempty"`
}

// A Hook is what a plugin's handlers of a point did since the appliance was started.
type Hook struct {
	Point    string  `json:"point"`
	Calls    uint64  `json:"calls"`
	Misses   uint64  `json:"misses"`
	Failures uint64  `json:"failures"`
	Mean     float64 `json:"mean_ms"`
	Worst    float64 `json:"worst_ms"`
	Error    string  `json:"error,omitempty"` // the last
}

func (o *Options) pluginRoutes(t *table) {
	p := o.Plugins
	t.handle("GET /api/plugins", o.serve(func(*http.Request) (any, error) { return p.List(), nil }))
	t.handle("PUT /api/plugins/{name}/enabled", o.serve(func(r *http.Request) (any, error) {
		var enabled bool
		if err := read(r, &enabled); err != nil {
			return nil, err
		}
		return nil, p.SetEnabled(r.Context(), r.PathValue("name"), enabled)
	}))
	t.handle("POST /api/plugins/{name}/reload", o.serve(func(r *http.Request) (any, error) {
		return nil, p.Reload(r.Context(), r.PathValue("name"))
	}))
	t.handle("GET /api/plugins/{name}/settings", o.serve(func(r *http.Request) (any, error) {
		return p.Settings(r.Context(), r.PathValue("name"))
	}))
	t.handle("PUT /api/plugins/{name}/settings", o.serve(func(r *http.Request) (any, error) {
		var values map[string]any
		if err := read(r, &values); err != nil {
			return nil, err
		}
		return nil, p.SetSettings(r.Context(), r.PathValue("name"), values)
	}))
	t.handle("POST /api/plugins/rescan", o.serve(func(r *http.Request) (any, error) {
		before := pluginNames(p)
		if err := p.Rescan(r.Context()); err != nil {
			return nil, err
		}
		after := pluginNames(p)
		return Rescanned{Added: without(after, before), Removed: without(before, after)}, nil
	}))
	t.handle("GET /api/plugins/{name}", o.serve(func(r *http.Request) (any, error) {
		for _, one := range p.List() {
			if one.Name == r.PathValue("name") {
				return one, nil
			}
		}
		return nil, Errorf(http.StatusNotFound, "there is no plugin %.100q", r.PathValue("name"))
	}))
}

// Rescanned is what a rescan found, by name.
type Rescanned struct {
	Added   []string `json:"added"`
	Removed []string `json:"removed"`
}

func pluginNames(p Plugins) []string {
	var names []string
	for _, one := range p.List() {
		names = append(names, one.Name)
	}
	return names
}

// without returns what of all isn't in some.
func without(all, some []string) []string {
	rest := []string{}
	for _, name := range all {
		if !slices.Contains(some, name) {
			rest = append(rest, name)
		}
	}
	return rest
}
