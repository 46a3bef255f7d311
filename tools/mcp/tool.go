package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"bellbird/dialog"
	"bellbird/tools"
)

// Bounds of what a model reads of a server with every request: how many tools, and how long each is described, in bytes.
const (
	maxTools       = 128
	maxDescription = 1024
	maxPages       = 64 // of a list
)

// A listing is what a server has at a time.
type listing struct {
	tools []tools.Tool      // that are offered, in an order that stays the same whatever order the server has
	own   map[string]string // the server's own names of them, by those that are offered
	hooks []string          // its reserved tools
}

func (c *session) list(ctx context.Context) (l listing, err error) {
	l.own = make(map[string]string)
	params := new(sdk.ListToolsParams)
	for range maxPages {
		page, err := c.ListTools(ctx, params)
		if err != nil {
			return l, err
		}
		for _, t := range page.Tools {
			switch {
			case t == nil:
			case strings.HasPrefix(t.Name, tools.ReservedPrefix):
				if len(l.hooks) < maxTools {
					l.hooks = append(l.hooks, t.Name)
				}
			case c.server.offers(t.Name):
				l.tools = append(l.tools, c.tool(t))
				l.own[safeName(t.Name)] = t.Name
			}
		}
		if page.NextCursor == "" || len(l.tools) >= maxTools {
			break
		}
		params.Cursor = page.NextCursor
	}
	slices.SortStableFunc(l.tools, func(a, b tools.Tool) int { return cmp.Compare(a.Spec.Name, b.Spec.Name) })
	if len(l.tools) > maxTools {
		c.server.log.Warn("mcp server: more tools than can be offered; name those you need in allow", "tools", len(l.tools), "most", maxTools)
		l.tools = l.tools[:maxTools]
	}
	return l, nil
}

// offers reports whether the server's tool of that name is for a model. Hooks never are.
func (s *Server) offers(name string) bool {
	switch {
	case strings.HasPrefix(strings.ToLower(name), tools.ReservedPrefix):
		return false
	case slices.Contains(s.o.Deny, name):
		return false
	}
	return len(s.o.Allow) == 0 || slices.Contains(s.o.Allow, name)
}

func (c *session) tool(t *sdk.Tool) tools.Tool {
	name := t.Name
	parameters, err := json.Marshal(t.InputSchema)
	if err != nil || string(parameters) == "null" {
		parameters = json.RawMessage(`{"type":"object"}`)
	}
	return tools.Tool{
		Spec: dialog.ToolSpec{
			Name:        safeName(name),
			Description: cut(cmp.Or(t.Description, t.Title), maxDescription),
			Parameters:  parameters,
		},
		Timeout: c.server.o.Timeout,
		Run:     func(ctx context.Context, args json.RawMessage) (string, error) { return c.call(ctx, name, args) },
	}
}

// safeName is a name as the models' interfaces accept it.
func safeName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return '_'
	}, name)
	return name[:min(len(name), 64)]
}

// notSent is the code by which the SDK says that a request didn't get through, rather than that it was refused.
const notSent = -32005

// call has the server run a tool. Whatever goes wrong with the server, the model is told so and the turn goes on.
func (c *session) call(ctx context.Context, name string, args json.RawMessage) (string, error) {
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	answered := make(chan *sdk.CallToolResult, 1)
	err := within(ctx, c.server.o.Timeout, func(ctx context.Context) error {
		r, err := c.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: args})
		answered <- r
		return err
	})
	var refused *jsonrpc.Error
	switch {
	case err == nil:
	case ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "", ctx.Err() // the turn is over
	case errors.Is(err, errNoAnswer), errors.Is(err, context.DeadlineExceeded):
		c.ask() // is it still there?
		return "", fmt.Errorf("%s: %w", c.server.o.Name, context.DeadlineExceeded)
	case errors.As(err, &refused) && refused.Code != notSent && !errors.Is(err, sdk.ErrConnectionClosed):
		return "", tools.Refusal(cut(fmt.Sprintf("%s refuses: %s", c.server.o.Name, refused.Message), maxDescription))
	default:
		c.ask()
		c.server.log.Warn("mcp server: a call failed", "tool", name, "err", err)
		return "", tools.Refusal(fmt.Sprintf("%s can't be reached at the moment.", c.server.o.Name))
	}
	r := <-answered
	text := flatten(r)
	if r.IsError {
		return "", tools.Refusal(cmp.Or(text, "It failed, and doesn't say why."))
	}
	return cmp.Or(text, "Done."), nil
}

// flatten is what a model reads of a result. What isn't text is named only.
func flatten(r *sdk.CallToolResult) string {
	var parts []string
	size := 0
	add := func(text string) {
		if text = strings.TrimSpace(text); text != "" && size <= tools.MaxResult {
			size += len(text)
			parts = append(parts, text)
		}
	}
	for _, content := range r.Content {
		switch content := content.(type) {
		case *sdk.TextContent:
			add(content.Text)
		case *sdk.ImageContent:
			add("(an image)")
		case *sdk.AudioContent:
			add("(a recording)")
		case *sdk.ResourceLink:
			add(strings.TrimSpace(content.Name + " " + content.URI))
		case *sdk.EmbeddedResource:
			switch {
			case content.Resource == nil:
			case content.Resource.Text != "":
				add(content.Resource.Text)
			default:
				add("(a file: " + content.Resource.URI + ")")
			}
		}
	}
	if len(parts) == 0 && r.StructuredContent != nil {
		if text, err := json.Marshal(r.StructuredContent); err == nil {
			add(string(text))
		}
	}
	return tools.Bound(strings.ToValidUTF8(strings.Join(parts, "\n"), "\ufffd"))
}

// cut is the beginning of a text, at a character's border.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	n := most - len("…")
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}
