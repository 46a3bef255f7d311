package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"bellbird/dialog"
	"bellbird/hooks"
	"bellbird/plugins/mcp"
	"bellbird/tools"
	toolsmcp "bellbird/tools/mcp"
)

// The tests' servers are this program again, told by its arguments how to behave; the good ones are the examples.

func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "peer" {
		if err := runPeer(os.Args[2], os.Args[3]); err != nil {
			log.Fatal(err)
		}
		return
	}
	os.Exit(m.Run())
}

// runPeer is a server over standard input and output, or over HTTP, whose address it prints.
func runPeer(mode, transport string) error {
	if transport == "http" {
		handler := http.NotFoundHandler()
		switch mode {
		case "mute": // never answers, not even the greeting
			handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		case "gone":
		default:
			server := newPeer(mode)
			handler = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
		}
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		fmt.Printf("http://%s/mcp\n", listener.Addr())
		return http.Serve(listener, handler)
	}
	switch mode {
	case "mute":
		io.Copy(io.Discard, os.Stdin)
		return nil
	case "gone":
		os.Exit(3)
	}
	return newPeer(mode).Run(context.Background(), &sdk.StdioTransport{})
}

const huge = 100 << 20 // bytes

// newPeer is a server whose hooks do what the mode says.
func newPeer(mode string) *sdk.Server {
	server := sdk.NewServer(&sdk.Implementation{Name: "peer", Version: "1"}, nil)
	say := func(text string) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil, nil
	}
	turns := 0
	for _, hook := range []string{"transcript", "turnComplete"} {
		name := "voiceos_hook_" + hook
		sdk.AddTool(server, &sdk.Tool{Name: name}, func(ctx context.Context, _ *sdk.CallToolRequest, _ map[string]any) (*sdk.CallToolResult, any, error) {
			turns++
			switch mode {
			case "good":
				return say(`{"decision": "handled", "responseText": "Good."}`)
			case "slow": // answers, but far too late
				<-ctx.Done()
				return say(`{"decision": "handled", "responseText": "Late."}`)
			case "late": // a moment too late, whatever it is told
				time.Sleep(700 * time.Millisecond)
				return say(`{"decision": "handled", "responseText": "Late."}`)
			case "broken":
				return say("I am no JSON.")
			case "refusing":
				return nil, nil, fmt.Errorf("no")
			case "huge":
				return say(`{"decision": "handled", "responseText": "` + strings.Repeat("x", huge) + `"}`)
			case "dying":
				os.Exit(3)
			case "changing": // from then on it has this hook no more
				server.RemoveTools(name)
				return say(`{"decision": "handled", "responseText": "Once."}`)
			}
			return say("")
		})
	}
	sdk.AddTool(server, &sdk.Tool{Name: "look.around"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		return say("All is quiet.")
	})
	return server
}

// peer is a manifest of a server in that mode, over standard input and output.
func peer(mode string) string {
	return manifestFor(mode, map[string]any{"command": []string{os.Args[0], "peer", mode, "stdio"}})
}

// webPeer is the same over HTTP.
func webPeer(t testing.TB, mode string) string {
	return manifestFor(mode, map[string]any{"url": startServer(t, os.Args[0], "peer", mode, "http")})
}

func manifestFor(mode string, server map[string]any) string {
	text, _ := json.Marshal(map[string]any{
		"name": mode, "server": server, "permissions": []any{map[string]any{"kind": "transcript", "scope": "all"}},
		"hooks": map[string]any{"transcript": map[string]any{}, "turnComplete": map[string]any{}},
	})
	return string(text)
}

// A realRig is a rig whose servers are real, and whose tools are in a set.
type realRig struct {
	*rig
	set *tools.Set
}

func newRealRig(t testing.TB, manifests map[string]string) *realRig {
	t.Helper()
	set, err := tools.NewSet(nil)
	if err != nil {
		t.Fatal(err)
	}
	r, end := newRig(t, manifests, func(m *mcp.Manifest, dir string) (mcp.Server, error) {
		return toolsmcp.New(toolsmcp.Options{Name: m.Name, Command: m.Server.Command, URL: m.Server.URL, Dir: dir, Put: set.Put})
	})
	t.Cleanup(end)
	r.owns = func(integration, tool string) bool { return set.Owner(tool) == "the MCP server "+integration }
	return &realRig{r, set}
}

// ready waits until those servers are connected.
func (r *realRig) ready(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		r.until(t, name+" is connected", func() bool {
			return slices.ContainsFunc(r.List(), func(i mcp.Info) bool { return i.Name == name && i.Connected })
		})
	}
}

// until looks again and again, for a minute.
func (r *realRig) until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for tick := time.NewTicker(5 * time.Millisecond); !ok(); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: never; %+v", what, r.List())
		}
	}
}

// Slow, broken and gone: whatever the server is like, the turn goes on, and the good one is heard.
func TestHostileServers(t *testing.T) {
	for _, transport := range []struct {
		name string
		of   func(t testing.TB, mode string) string
	}{
		{"stdio", func(_ testing.TB, mode string) string { return peer(mode) }},
		{"http", webPeer},
	} {
		for _, mode := range []string{"slow", "late", "broken", "refusing", "huge", "mute", "gone", "dying"} {
			t.Run(transport.name+"/"+mode, func(t *testing.T) {
				r := newRealRig(t, map[string]string{mode: transport.of(t, mode), "good": peer("good")})
				r.ready(t, "good")
				if mode != "mute" && mode != "gone" {
					r.ready(t, mode)
				}
				heard := 0
				r.until(t, "the good one is heard four times", func() bool {
					e := said("hello")
					r.runner.Fire(t.Context(), "pre_chat", e)
					switch show(e.Response) {
					case "Good.":
						heard++
					case "none": // this machine has no time for the good one either
					default:
						t.Errorf("the answer is %.100q", *e.Response)
					}
					return heard == 4 // three may be those for which the hostile one is waited for
				})
				for _, line := range r.take(&r.trace) {
					if line == mode+": committed" {
						t.Errorf("%s counts", mode)
					}
				}
			})
		}
	}
}

// A hook that the server takes back is not called any more, and no hook is ever offered as a tool.
func TestChangingServer(t *testing.T) {
	r := newRealRig(t, map[string]string{"changing": peer("changing")})
	r.ready(t, "changing")
	e := said("hello")
	r.runner.Fire(t.Context(), "pre_chat", e)
	if show(e.Response) != "Once." {
		t.Errorf("answer %s", show(e.Response))
	}
	r.until(t, "the hook is gone", func() bool {
		r.take(&r.trace)
		e := said("hello")
		r.runner.Fire(t.Context(), "pre_chat", e)
		return !e.SkipLLM && len(r.take(&r.trace)) == 0
	})
	specs := r.set.Specs()
	if len(specs) != 1 || specs[0].Name != "look_around" {
		t.Errorf("the model is offered %+v", specs)
	}
	for _, name := range []string{"voiceos_hook_transcript", "voiceos_hook_turnComplete"} {
		if got := r.set.Call(t.Context(), dialog.ToolCall{Name: name, Arguments: json.RawMessage(`{}`)}).Content; got != fmt.Sprintf("There is no tool %q.", name) {
			t.Errorf("the model calls %s: %s", name, got)
		}
	}
}

// A server that dies is started again, and heard again.
func TestServerComesBack(t *testing.T) {
	flag := filepath.Join(t.TempDir(), "died")
	script := fmt.Sprintf(`[ -e %q ] && exec %q peer good stdio; touch %q; exec %q peer dying stdio`, flag, os.Args[0], flag, os.Args[0])
	r := newRealRig(t, map[string]string{"phoenix": manifestFor("phoenix", map[string]any{"command": []string{"sh", "-c", script}})})
	r.ready(t, "phoenix")
	e := said("hello")
	r.runner.Fire(t.Context(), "pre_chat", e) // it dies of it
	if e.SkipLLM {
		t.Errorf("the dead answer %s", show(e.Response))
	}
	r.until(t, "it is heard again", func() bool {
		e := said("hello")
		r.runner.Fire(t.Context(), "pre_chat", e)
		return show(e.Response) == "Good."
	})
}

var buildOrders = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "orders")
	if err != nil {
		return "", err
	}
	out := filepath.Join(dir, "orders")
	cmd := exec.Command("go", "build", "-o", out, "./")
	cmd.Dir = "../examples/integrations/orders"
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, text)
	}
	return out, nil
})

// exampleCommand is how an example is run.
func exampleCommand(t testing.TB, name string) []string {
	if name == "orders" {
		path, err := buildOrders()
		if err != nil {
			t.Fatal(err)
		}
		return []string{path}
	}
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3")
	}
	path, err := filepath.Abs("../examples/integrations/shopping/server.py")
	if err != nil {
		t.Fatal(err)
	}
	return []string{"python3", path}
}

// startExample runs an example over HTTP, and returns its address.
func startExample(t testing.TB, name string) string {
	command := exampleCommand(t, name)
	more := []string{"-http", "127.0.0.1:0"}
	if name == "shopping" {
		more = []string{"--http", "0"}
	}
	return startServer(t, append(command, more...)...)
}

// startServer runs a server that prints its address, and returns that.
func startServer(t testing.TB, command ...string) string {
	cmd := exec.Command(command[0], command[1:]...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// exampleManifest is the example's own, but for where the server is.
func exampleManifest(t testing.TB, name string, server map[string]any) string {
	text, err := os.ReadFile(filepath.Join("../examples/integrations", name, mcp.ManifestName))
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	m["server"] = server
	text, err = json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// example is a rig of one of the examples.
func example(t testing.TB, name, transport string) *realRig {
	server := map[string]any{"command": exampleCommand(t, name)}
	if transport == "http" {
		server = map[string]any{"url": startExample(t, name)}
	}
	r := newRealRig(t, map[string]string{name: exampleManifest(t, name, server)})
	r.ready(t, name)
	return r
}

// fire fires until it had its time: this machine may be busy.
func (r *realRig) fire(t testing.TB, point string, make func() *hooks.Event) *hooks.Event {
	t.Helper()
	for range 3 {
		r.take(&r.trace)
		e := make()
		r.runner.Fire(t.Context(), point, e)
		calls := r.take(&r.trace)
		if len(calls) == 1 && strings.HasSuffix(calls[0], "committed") {
			return e
		}
		t.Logf("%s: %q", point, calls)
	}
	t.Fatalf("%s is never answered", point)
	return nil
}

var exampleTransports = []string{"stdio", "http"}

func TestShopping(t *testing.T) {
	for _, transport := range exampleTransports {
		t.Run(transport, func(t *testing.T) {
			r := example(t, "shopping", transport)
			var names []string
			for _, s := range r.set.Specs() {
				names = append(names, s.Name)
			}
			if got := strings.Join(names, " "); got != "add_item clear_list list_items" {
				t.Errorf("tools %q", got)
			}

			e := r.fire(t, "pre_chat", func() *hooks.Event { return said("Add oat milk to my shopping list.") })
			if !e.SkipLLM || show(e.Response) != "Oat milk is on the list." {
				t.Errorf("%v, %s", e.SkipLLM, show(e.Response))
			}
			if views := r.take(&r.views); len(views) == 0 || !strings.Contains(views[0], "oat milk") {
				t.Errorf("views %q", views)
			}
			if e := r.fire(t, "pre_chat", func() *hooks.Event { return said("what time is it") }); e.SkipLLM || e.Input != "what time is it" {
				t.Errorf("%+v", e)
			}

			e = r.fire(t, "dictation", func() *hooks.Event {
				return &hooks.Event{Input: "eggs, and bread", ChatPrivate: new(false), Metadata: map[string]any{"app": "shopping"}}
			})
			if !e.SkipLLM {
				t.Error("the dictation is not consumed")
			}

			before := func(tool string, args map[string]any) *hooks.Event {
				return r.fire(t, "pre_execute", func() *hooks.Event {
					return &hooks.Event{FunctionName: &tool, Arguments: args, ChatPrivate: new(false)}
				})
			}
			if e := before("clear_list", nil); e.SkipLLM || !strings.HasPrefix(show(e.Confirm), "There are ") {
				t.Errorf("clear_list: %v, %s", e.SkipLLM, show(e.Confirm))
			}
			if e := before("add_item", map[string]any{"item": " tea "}); fmt.Sprint(e.Arguments) != "map[item:tea]" {
				t.Errorf("add_item: %v", e.Arguments)
			}
			result := r.set.Call(t.Context(), dialog.ToolCall{Name: "list_items", Arguments: json.RawMessage(`{}`)}).Content
			e = r.fire(t, "post_execute", func() *hooks.Event {
				return &hooks.Event{FunctionName: hooks.String("list_items"), Result: &result, ChatPrivate: new(false)}
			})
			if got := show(e.Result); !strings.HasPrefix(got, "oat milk") || !strings.HasSuffix(got, "eggs, bread") {
				t.Errorf("list_items: %s made of %s", got, result)
			}

			r.runner.Fire(t.Context(), "post_chat", said("hello"))
			r.until(t, "the receipt is there", func() bool { return slices.Contains(r.take(&r.trace), "shopping: committed") })
		})
	}
}

func TestOrders(t *testing.T) {
	for _, transport := range exampleTransports {
		t.Run(transport, func(t *testing.T) {
			r := example(t, "orders", transport)
			e := r.fire(t, "pre_chat", func() *hooks.Event { return said("Where is order 17?") })
			if !e.SkipLLM || show(e.Response) != "Order 17 is packed." {
				t.Errorf("%v, %s", e.SkipLLM, show(e.Response))
			}
			e = r.fire(t, "pre_chat", func() *hooks.Event { return said("is order number 18 late") })
			if e.SkipLLM || !slices.Equal(e.ContextParts, []string{"From orders: Order 18 is on its way."}) {
				t.Errorf("%v, %q", e.SkipLLM, e.ContextParts)
			}
			e = r.fire(t, "dictation", func() *hooks.Event {
				return &hooks.Event{Input: "call about order number 17", ChatPrivate: new(false), Metadata: map[string]any{"app": "notes"}}
			})
			if e.SkipLLM || e.Input != "call about order #17" {
				t.Errorf("%v, %q", e.SkipLLM, e.Input)
			}

			// The tool has a name that models' interfaces don't accept; the hook gets its own.
			before := func(numbers ...any) *hooks.Event {
				return r.fire(t, "pre_execute", func() *hooks.Event {
					return &hooks.Event{FunctionName: hooks.String("orders_cancel"), Arguments: map[string]any{"numbers": numbers}, ChatPrivate: new(false)}
				})
			}
			if e := before(17.0); e.SkipLLM || e.Confirm != nil {
				t.Errorf("one: %v, %s", e.SkipLLM, show(e.Confirm))
			}
			if e := before(17.0, 19.0); e.SkipLLM || show(e.Confirm) != "That cancels 2 orders." {
				t.Errorf("two: %v, %s", e.SkipLLM, show(e.Confirm))
			}
			if e := before(18.0); !e.SkipLLM || show(e.Result) != "Order 18 is on its way already." {
				t.Errorf("too late: %v, %s", e.SkipLLM, show(e.Result))
			}
			e = r.fire(t, "post_execute", func() *hooks.Event {
				return &hooks.Event{FunctionName: hooks.String("orders_cancel"), Result: hooks.String("Cancelled: [17]"), ChatPrivate: new(false)}
			})
			if show(e.Result) != `{"done":true,"said":"Cancelled: [17]"}` {
				t.Errorf("result %s", show(e.Result))
			}
			// Another's tool is none of its business.
			e = &hooks.Event{FunctionName: hooks.String("set_timer"), Arguments: map[string]any{"numbers": []any{18.0}}, ChatPrivate: new(false)}
			if r.runner.Fire(t.Context(), "pre_execute", e); e.SkipLLM || len(r.take(&r.trace)) > 0 {
				t.Error("it was asked about another's tool")
			}
			if !r.Withheld("orders_cancel") || r.Withheld("set_timer") {
				t.Error("its tool is offered in private chats, or another's isn't")
			}
		})
	}
}
