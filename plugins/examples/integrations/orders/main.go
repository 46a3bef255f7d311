// Command orders is an example of an integration: an MCP server whose reserved tools are hooks. It speaks on its standard
// input and output, or with -http ADDRESS streamable HTTP.
//
//	go build -o orders .
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	address := flag.String("http", "", "the address to listen on")
	flag.Parse()
	if *address == "" {
		if err := newServer(new(desk)).Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			log.Fatal(err)
		}
		return
	}
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s/mcp\n", listener.Addr())
	server := newServer(new(desk))
	log.Fatal(http.Serve(listener, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)))
}

// A desk has the orders.
type desk struct {
	mu       sync.Mutex
	orders   map[int]string // states by number
	receipts int
}

// result is what a hook answers. Empty, it means: go on as if nobody had been asked.
type result struct {
	Decision            string         `json:"decision,omitempty"` // "block" or "handled"
	UpdatedText         string         `json:"updatedText,omitempty"`
	UpdatedArgs         map[string]any `json:"updatedArgs,omitempty"`
	UpdatedResult       any            `json:"updatedResult,omitempty"`
	AdditionalContext   string         `json:"additionalContext,omitempty"`
	RequireConfirmation bool           `json:"requireConfirmation,omitempty"`
	ResponseText        string         `json:"responseText,omitempty"`
	View                map[string]any `json:"view,omitempty"`
	Reason              string         `json:"reason,omitempty"`
}

type (
	transcript struct {
		Transcript   string `json:"transcript"`
		FrontmostApp string `json:"frontmostApp"`
	}
	dictation struct {
		Text         string `json:"text"`
		FrontmostApp string `json:"frontmostApp"`
	}
	toolUse struct { // before, and, with a result, after
		ToolName     string         `json:"toolName"`
		Args         map[string]any `json:"args"`
		Result       string         `json:"result,omitempty"`
		FrontmostApp string         `json:"frontmostApp"`
	}
	turnComplete struct {
		Transcript   string   `json:"transcript"`
		Response     string   `json:"response"`
		ToolsUsed    []string `json:"toolsUsed"`
		FrontmostApp string   `json:"frontmostApp"`
	}
	orders struct {
		Numbers []int `json:"numbers"`
	}
)

// newServer has the tools of a desk, and its hooks.
func newServer(d *desk) *mcp.Server {
	d.orders = map[int]string{17: "packed", 18: "on its way"}
	s := mcp.NewServer(&mcp.Implementation{Name: "orders", Version: "1.0.0"}, nil)
	hook(s, "transcript", d.transcript)
	hook(s, "dictation", d.dictation)
	hook(s, "preToolUse", d.preToolUse)
	hook(s, "postToolUse", d.postToolUse)
	hook(s, "turnComplete", d.turnComplete)
	mcp.AddTool(s, &mcp.Tool{Name: "orders.cancel", Description: "Cancels orders by their numbers."}, d.cancel)
	return s
}

func hook[In any](s *mcp.Server, event string, f func(In) result) {
	mcp.AddTool(s, &mcp.Tool{Name: "voiceos_hook_" + event}, func(_ context.Context, _ *mcp.CallToolRequest, in In) (*mcp.CallToolResult, result, error) {
		return nil, f(in), nil
	})
}

var orderNumber = regexp.MustCompile(`(?i)\border (?:number )?(\d+)\b`)

// transcript answers where an order is, and else tells the model what is known of an order that is spoken of.
func (d *desk) transcript(e transcript) result {
	m := orderNumber.FindStringSubmatch(e.Transcript)
	if m == nil {
		return result{}
	}
	n, _ := strconv.Atoi(m[1])
	d.mu.Lock()
	state, known := d.orders[n]
	d.mu.Unlock()
	switch {
	case !known:
		return result{}
	case !strings.HasPrefix(strings.ToLower(e.Transcript), "where is"):
		return result{AdditionalContext: fmt.Sprintf("Order %d is %s.", n, state)}
	}
	return result{
		Decision: "handled", ResponseText: fmt.Sprintf("Order %d is %s.", n, state),
		View: map[string]any{"blocks": []any{map[string]any{"type": "text", "text": fmt.Sprintf("%d: %s", n, state)}}},
	}
}

// dictation writes the numbers of orders as the shop does.
func (d *desk) dictation(e dictation) result {
	return result{UpdatedText: orderNumber.ReplaceAllString(e.Text, "order #$1")}
}

// preToolUse has more than one cancellation confirmed, and refuses what is on its way.
func (d *desk) preToolUse(e toolUse) result {
	numbers, _ := e.Args["numbers"].([]any)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range numbers {
		if f, ok := n.(float64); ok && d.orders[int(f)] == "on its way" {
			return result{Decision: "block", ResponseText: fmt.Sprintf("Order %d is on its way already.", int(f))}
		}
	}
	if len(numbers) > 1 {
		return result{RequireConfirmation: true, Reason: fmt.Sprintf("That cancels %d orders.", len(numbers))}
	}
	return result{}
}

func (d *desk) postToolUse(e toolUse) result {
	return result{UpdatedResult: map[string]any{"done": true, "said": e.Result}}
}

func (d *desk) turnComplete(turnComplete) result {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.receipts++
	return result{}
}

// cancel is the tool.
func (d *desk) cancel(_ context.Context, _ *mcp.CallToolRequest, in orders) (*mcp.CallToolResult, any, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range in.Numbers {
		delete(d.orders, n)
	}
	text, _ := json.Marshal(in.Numbers)
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Cancelled: " + string(text)}}}, nil, nil
}
