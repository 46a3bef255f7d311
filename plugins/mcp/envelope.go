package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// What is said to an integration, and what it answers: one object each way.

// A hookEvent is what the manifest's rules and the runner need to know of a hook.
type hookEvent struct {
	point string // of package hooks
	scope string // of the permission
	tap   bool   // it is about a tool
}

var events = map[string]hookEvent{
	"transcript":   {point: "pre_chat", scope: "agent"},
	"dictation":    {point: "dictation", scope: "dictation"},
	"preToolUse":   {point: "pre_execute", scope: "agent", tap: true},
	"postToolUse":  {point: "post_execute", scope: "agent", tap: true},
	"turnComplete": {point: "post_chat", scope: "agent"},
}

// What each event is called with. FrontmostApp is what is in front: the app that is dictated to, or else the surface on
// which the chat is.
type (
	transcriptInput struct {
		Transcript   string `json:"transcript"`
		FrontmostApp string `json:"frontmostApp"`
	}
	dictationInput struct {
		Text         string `json:"text"`
		FrontmostApp string `json:"frontmostApp"`
	}
	preToolUseInput struct {
		ToolName     string         `json:"toolName"` // as its server calls it
		Args         map[string]any `json:"args"`
		FrontmostApp string         `json:"frontmostApp"`
	}
	postToolUseInput struct {
		ToolName     string         `json:"toolName"`
		Args         map[string]any `json:"args"`
		Result       string         `json:"result"`
		FrontmostApp string         `json:"frontmostApp"`
	}
	turnCompleteInput struct {
		Transcript   string   `json:"transcript"`
		Response     string   `json:"response"`
		ToolsUsed    []string `json:"toolsUsed"` // of its own
		FrontmostApp string   `json:"frontmostApp"`
	}
)

// Result is what a hook answers. The zero value is "continue untouched".
type Result struct {
	Decision            string          `json:"decision"` // "", "continue", "block" or "handled"
	UpdatedText         string          `json:"updatedText"`
	UpdatedArgs         map[string]any  `json:"updatedArgs"`
	UpdatedResult       json.RawMessage `json:"updatedResult"`
	AdditionalContext   string          `json:"additionalContext"`
	RequireConfirmation bool            `json:"requireConfirmation"` // true asks; false doesn't take a question back
	ResponseText        string          `json:"responseText"`
	View                *View           `json:"view"`
	Reason              string          `json:"reason"` // for the log, and the user who is asked; never for the model
}

// A View is what a dashboard may show of a turn that was handled.
type View struct {
	Blocks []json.RawMessage `json:"blocks"`
}

// Bounds of what an integration may say, in bytes.
const (
	maxAnswer   = 256 << 10 // of the whole object
	maxText     = 16 << 10  // updatedText
	maxContext  = 2 << 10   // additionalContext
	maxResponse = 4 << 10
	maxReason   = 300
	maxArgs     = 64 << 10
	maxView     = 16 << 10 // all blocks together
	maxBlocks   = 32
)

// ParseResult reads an answer. Nothing, null and {} are the zero Result. An error names the field that can't be honoured;
// then nothing of the answer is.
func ParseResult(answer json.RawMessage) (*Result, error) {
	r := new(Result)
	answer = bytes.TrimSpace(answer)
	if len(answer) == 0 || string(answer) == "null" {
		return r, nil
	}
	switch {
	case len(answer) > maxAnswer:
		return nil, fmt.Errorf("an answer of %d bytes, the most are %d", len(answer), maxAnswer)
	case answer[0] != '{':
		return nil, errors.New("the answer is no object")
	}
	if err := json.Unmarshal(answer, r); err != nil {
		return nil, err
	}
	switch r.Decision {
	case "", "continue", "block", "handled":
	default:
		return nil, fmt.Errorf("decision: %.30q is none", r.Decision)
	}
	for _, b := range []struct {
		field string
		size  int
		most  int
	}{
		{"updatedText", len(r.UpdatedText), maxText},
		{"additionalContext", len(r.AdditionalContext), maxContext},
		{"responseText", len(r.ResponseText), maxResponse},
	} {
		if b.size > b.most {
			return nil, fmt.Errorf("%s: %d bytes, the most are %d", b.field, b.size, b.most)
		}
	}
	if r.UpdatedArgs != nil {
		if args, err := json.Marshal(r.UpdatedArgs); err != nil || len(args) > maxArgs {
			return nil, fmt.Errorf("updatedArgs: more than %d bytes", maxArgs)
		}
	}
	if string(r.UpdatedResult) == "null" {
		r.UpdatedResult = nil
	}
	r.Reason = cut(strings.Join(strings.Fields(r.Reason), " "), maxReason)
	return r, r.View.check()
}

func (v *View) check() error {
	if v == nil {
		return nil
	}
	size := 0
	for _, b := range v.Blocks {
		size += len(b)
	}
	if len(v.Blocks) > maxBlocks || size > maxView {
		return fmt.Errorf("view: %d blocks of %d bytes, the most are %d of %d", len(v.Blocks), size, maxBlocks, maxView)
	}
	return nil
}

// ends reports whether the integration takes what it got out of the appliance's hands.
func (r *Result) ends() bool { return r.Decision == "block" || r.Decision == "handled" }

// rewrites reports whether there is another text. Blanking is not a rewrite: block and handled are for that.
func (r *Result) rewrites() bool { return strings.TrimSpace(r.UpdatedText) != "" }

// result is updatedResult as a model reads it.
func (r *Result) result() string {
	var text string
	if json.Unmarshal(r.UpdatedResult, &text) == nil {
		return text
	}
	return string(r.UpdatedResult)
}

// cut is the beginning of a text, at a character's border.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("…")], "") + "…"
}
