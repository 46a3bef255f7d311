package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"bellbird/dialog"
)

// A Fault is what a server said instead of an answer.
type Fault struct {
	Status     int           // 0: it came within an answer
	RetryAfter time.Duration // 0: not said
	Code       string        // as the API names it: of its type and code, what there is
	Message    string
}

func (f *Fault) Error() string {
	var b strings.Builder
	if f.Status != 0 {
		fmt.Fprintf(&b, "status %d", f.Status)
	} else {
		b.WriteString("error within the answer")
	}
	if f.Code != "" {
		b.WriteString(", " + f.Code)
	}
	if f.Message != "" {
		b.WriteString(": " + f.Message)
	}
	return b.String()
}

// ParseFault reads the body of an error in one of the forms that the servers use: {"error": {"type", "code",
// "message"}}, {"error": "…"}, {"type", "message"} or {"detail": "…"}. Of any other it takes nothing.
func ParseFault(body []byte) *Fault {
	type fields struct {
		Type, Code any
		Message    string
	}
	var outer struct {
		fields
		Error  json.RawMessage
		Detail any
	}
	f := &Fault{}
	if json.Unmarshal(body, &outer) != nil {
		return f
	}
	in := outer.fields
	if len(outer.Error) > 0 {
		if json.Unmarshal(outer.Error, &in.Message) != nil {
			in = fields{}
			json.Unmarshal(outer.Error, &in) // what doesn't fit stays empty
		}
	}
	if detail, ok := outer.Detail.(string); ok && in.Message == "" {
		in.Message = detail
	}
	var codes []string
	for _, c := range []any{in.Type, in.Code} {
		if c, ok := c.(string); ok && c != "" && c != "error" {
			codes = append(codes, short(c, 60))
		}
	}
	f.Code, f.Message = strings.Join(codes, ", "), short(in.Message, 300)
	return f
}

// short is the first line of a text, at most n bytes of it.
func short(text string, n int) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	if len(text) > n {
		text = strings.ToValidUTF8(text[:n], "") + "…"
	}
	return text
}

// kind tells what a fault means. Servers differ in their status codes; where they agree on words, these decide.
func (f *Fault) kind(hasKey bool) dialog.ModelErrorKind {
	text := strings.ToLower(f.Code + " " + f.Message)
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	switch {
	case has("insufficient_quota", "credit balance", "billing_error"), f.Status == http.StatusPaymentRequired:
		return dialog.NoCredit
	case has("authentication_error", "invalid_api_key", "permission_error"),
		f.Status == http.StatusUnauthorized, f.Status == http.StatusForbidden:
		if !hasKey {
			return dialog.NoKey
		}
		return dialog.WrongKey
	case has("context_length", "exceed_context", "context length", "context size", "context window", "prompt is too long"),
		f.Status == http.StatusRequestEntityTooLarge:
		return dialog.ContextTooLong
	case has("model_not_found", "not_found_error"), has("model") && has("not found", "does not exist"),
		f.Status == http.StatusNotFound:
		return dialog.UnknownModel
	case has("rate_limit"), f.Status == http.StatusTooManyRequests:
		return dialog.RateLimited
	case has("content_filter", "content_policy"):
		return dialog.Refused
	case f.Status >= 500, f.Status == http.StatusRequestTimeout, f.Status == http.StatusConflict,
		f.Status == 0 && !has("invalid_request_error"):
		return dialog.ServerFault
	}
	return dialog.BadRequest
}

// retryAfter reads how long the server wants to be left alone; 0 is not said.
func retryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	text := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(text, 64); err == nil && s > 0 && s < 1e6 {
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

// withoutSpeech takes what was said in the conversation out of a message for the log: some servers repeat it.
func withoutSpeech(message string, req dialog.Request) string {
	for _, m := range req.Messages {
		if said := strings.TrimSpace(m.Content); m.Role != dialog.System && len(said) > 3 {
			if strings.Contains(message, said) || strings.Contains(said, message) {
				return ""
			}
		}
	}
	return message
}

var (
	errTooMuch     = errors.New("the server sends too much")
	errNoBeginning = fmt.Errorf("no answer began in time: %w", context.DeadlineExceeded)
	errNoMore      = fmt.Errorf("nothing more came of the answer: %w", context.DeadlineExceeded)
)
