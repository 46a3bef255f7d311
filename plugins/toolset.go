package plugins

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"

	"bellbird/dialog"
	"bellbird/tools"
)

// A Toolbox is a Unit that can bring tools for the model.
type Toolbox interface {
	// Tools returns the schemas of the tools, as the file declares them, or an error that says what is missing in it.
	Tools(ctx context.Context) ([]map[string]any, error)
	// Execute runs a tool. If it refuses, not ok, the text says why, and is for the model like any other.
	Execute(ctx context.Context, name string, args map[string]any) (text string, ok bool, err error)
}

// maxTools bounds what one plugin brings.
const maxTools = 64

// toolOwner is how a plugin is called among those that bring tools.
func toolOwner(plugin string) string { return "the plugin " + plugin }

// tools are those of the plugin's manifest. local are the names of those that say of themselves that what they are told
// stays on the appliance.
func (l *Loader) tools(ctx context.Context, p *plugin, load func(file string) (Unit, error)) (all []tools.Tool, local map[string]bool, err error) {
	local = make(map[string]bool)
	for _, file := range p.Manifest.Capabilities.Tools {
		unit, err := load(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue // told already
		}
		if err != nil {
			return nil, nil, err
		}
		box, ok := unit.(Toolbox)
		if !ok {
			return nil, nil, fmt.Errorf("%s: tools can't be written in this language", file)
		}
		schemas, err := box.Tools(ctx)
		if err != nil {
			return nil, nil, err
		}
		for i, s := range schemas {
			spec, isLocal, err := toolSpec(s)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: TOOLS[%d]: %w", file, i, err)
			}
			local[spec.Name] = isLocal
			all = append(all, tools.Tool{Spec: spec, Run: runTool(box, spec.Name)})
		}
	}
	if len(all) > maxTools {
		return nil, nil, fmt.Errorf("%d tools, the most are %d", len(all), maxTools)
	}
	return all, local, nil
}

// toolSpec reads a schema: {"type": "function", "function": {"name", "description", "parameters"}, "is_local"}, or only
// what is under "function" in that.
func toolSpec(schema map[string]any) (spec dialog.ToolSpec, local bool, err error) {
	f, ok := schema["function"].(map[string]any)
	if !ok {
		f = schema
	}
	spec.Name, _ = f["name"].(string)
	if spec.Name == "" {
		return spec, false, errors.New("it has no name")
	}
	spec.Description, _ = f["description"].(string)
	switch parameters := f["parameters"].(type) {
	case nil:
	case map[string]any:
		if spec.Parameters, err = json.Marshal(parameters); err != nil {
			return spec, false, fmt.Errorf("%q: parameters: %w", spec.Name, err)
		}
	default:
		return spec, false, fmt.Errorf("%q: its parameters are no dict", spec.Name)
	}
	local, _ = schema["is_local"].(bool)
	return spec, local, nil
}

func runTool(box Toolbox, name string) func(context.Context, json.RawMessage) (string, error) {
	return func(ctx context.Context, args json.RawMessage) (string, error) {
		var arguments map[string]any
		if len(args) > 0 {
			if err := json.Unmarshal(args, &arguments); err != nil {
				return "", tools.Refusal("The arguments are no JSON object.")
			}
		}
		text, ok, err := box.Execute(ctx, name, arguments)
		if err != nil {
			return "", err
		}
		if !ok {
			return "", tools.Refusal(text)
		}
		return text, nil
	}
}

// offer puts a plugin's tools in the place of those that it had. If one of them can't be, because its name is another's,
// say, all stays as it was.
func (l *Loader) offer(p *plugin, all []tools.Tool, local map[string]bool) error {
	if l.o.Tools == nil || len(all) == 0 && len(p.tools) == 0 {
		return nil
	}
	before, after := l.withheldTools(), maps.Clone(l.withheldTools())
	for _, t := range p.tools {
		delete(after, t.Spec.Name)
	}
	for _, t := range all {
		if !p.Manifest.PrivacyAware || !local[t.Spec.Name] {
			after[t.Spec.Name] = true
		}
	}
	both := maps.Clone(before) // so that at no time there is a tool which is not withheld, but should be
	maps.Copy(both, after)
	l.withheld.Store(&both)
	name := toolOwner(p.Manifest.Name)
	if err := l.o.Tools(name, all...); err != nil {
		err = errors.Join(err, l.o.Tools(name, p.tools...))
		l.withheld.Store(&before)
		return err
	}
	l.withheld.Store(&after)
	p.tools, p.Tools = all, nil
	for _, t := range all {
		p.Tools = append(p.Tools, t.Spec.Name)
	}
	return nil
}

func (l *Loader) withheldTools() map[string]bool {
	if w := l.withheld.Load(); w != nil {
		return *w
	}
	return map[string]bool{}
}

// Withheld reports whether a tool must not be offered in a private chat: it is a plugin's, and either that isn't aware of
// privacy, or it doesn't say that what the tool is told stays here. It doesn't wait.
func (l *Loader) Withheld(tool string) bool { return l.withheldTools()[tool] }
