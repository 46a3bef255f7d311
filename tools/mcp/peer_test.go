package mcp

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The tests' MCP servers are this program again, told by its environment how to behave.
const peerMode = "BELLBIRD_MCP_PEER"

func TestMain(m *testing.M) {
	switch mode := os.Getenv(peerMode); mode {
	case "":
		os.Exit(m.Run())
	case "good":
		if err := newPeer().Run(context.Background(), &sdk.StdioTransport{}); err != nil {
			log.Fatal(err)
		}
	case "mute": // reads and never answers
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		}
	case "deaf": // doesn't even read, nor end
		select {}
	case "babble":
		for {
			if _, err := fmt.Println("this is no JSON"); err != nil {
				os.Exit(1)
			}
		}
	case "endless": // one message that never ends
		fmt.Print(`{"jsonrpc":"2.0","id":1,"result":"`)
		for {
			if _, err := fmt.Print(strings.Repeat("x", 1<<16)); err != nil {
				os.Exit(1)
			}
		}
	case "brief":
		os.Exit(3)
	default:
		log.Fatalf("mode %q", mode)
	}
}

type text struct {
	Text string `json:"text"`
}

// newPeer is a server with a tool for everything that can go well or wrong.
func newPeer() *sdk.Server {
	server := sdk.NewServer(&sdk.Implementation{Name: "peer", Version: "1"}, nil)
	say := func(text string) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil, nil
	}
	add := func(name string, f func(context.Context) (*sdk.CallToolResult, any, error)) {
		sdk.AddTool(server, &sdk.Tool{Name: name, Description: "Does " + name + "."}, func(ctx context.Context, _ *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
			return f(ctx)
		})
	}
	sdk.AddTool(server, &sdk.Tool{Name: "echo"}, func(_ context.Context, _ *sdk.CallToolRequest, in text) (*sdk.CallToolResult, any, error) {
		return say(in.Text)
	})
	type numbers struct {
		A int `json:"a"`
		B int `json:"b,omitempty"`
	}
	sdk.AddTool(server, &sdk.Tool{Name: "sum"}, func(_ context.Context, _ *sdk.CallToolRequest, in numbers) (*sdk.CallToolResult, numbers, error) {
		return nil, numbers{A: in.A + in.B}, nil
	})
	add("look.around", func(context.Context) (*sdk.CallToolResult, any, error) { return say("All is quiet.") })
	add("voiceos_hook_transcript", func(context.Context) (*sdk.CallToolResult, any, error) { return say("heard") })
	add("VoiceOS_hook_dictation", func(context.Context) (*sdk.CallToolResult, any, error) { return say("heard") })
	add("voiceos.hook_x", func(context.Context) (*sdk.CallToolResult, any, error) { return say("heard") })
	add("fail", func(context.Context) (*sdk.CallToolResult, any, error) { return nil, nil, fmt.Errorf("no bread left") })
	add("die", func(context.Context) (*sdk.CallToolResult, any, error) { os.Exit(3); return nil, nil, nil })
	add("hang", func(context.Context) (*sdk.CallToolResult, any, error) { select {} })
	add("large", func(context.Context) (*sdk.CallToolResult, any, error) { return say(strings.Repeat("x", 1<<20)) })
	add("huge", func(context.Context) (*sdk.CallToolResult, any, error) { return say(strings.Repeat("x", 10<<20)) })
	add("silent", func(context.Context) (*sdk.CallToolResult, any, error) { return &sdk.CallToolResult{}, nil, nil })
	add("picture", func(context.Context) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{
			&sdk.TextContent{Text: "The door:"}, &sdk.ImageContent{Data: []byte("x"), MIMEType: "image/png"},
			&sdk.ResourceLink{Name: "film", URI: "file:///film"},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///note", Text: "a note"}},
		}}, nil, nil
	})
	add("grow", func(context.Context) (*sdk.CallToolResult, any, error) {
		add("grown", func(context.Context) (*sdk.CallToolResult, any, error) { return say("Bigger.") })
		server.RemoveTools("silent")
		return say("Growing.")
	})
	add("shout", func(context.Context) (*sdk.CallToolResult, any, error) {
		fmt.Fprintln(os.Stderr, "first line\nsecond \xff line")
		fmt.Fprint(os.Stderr, strings.Repeat(strings.Repeat("y", 5000)+"\n", 2000))
		return say("Quiet again.")
	})
	add("environment", func(context.Context) (*sdk.CallToolResult, any, error) { return say(strings.Join(os.Environ(), "\n")) })
	add("spawn", func(context.Context) (*sdk.CallToolResult, any, error) {
		child := exec.Command("sleep", "1000")
		child.Stdout = os.Stdout // holds the pipe open when its parent is gone
		if err := child.Start(); err != nil {
			return nil, nil, err
		}
		return say(fmt.Sprint(child.Process.Pid))
	})
	add("freeze", func(context.Context) (*sdk.CallToolResult, any, error) {
		// The whole process stops, as one that thrashes.
		p, err := os.FindProcess(os.Getpid())
		if err != nil {
			return nil, nil, err
		}
		time.AfterFunc(time.Millisecond, func() { p.Signal(stop) })
		return say("Freezing.")
	})
	return server
}
