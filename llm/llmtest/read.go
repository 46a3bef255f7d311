package llmtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"bellbird/dialog"
	"bellbird/llm"
)

// Read asks a model to which every answer comes from r, and returns the answer in one line: its text, then " [id:name
// arguments]" for each call, " input+output" for the usage and " (kind)" for the error. newModel makes the model with the
// transport. Read fails the test if the model leaves the stream open, or yields what no model may.
func Read(t testing.TB, newModel func(http.RoundTripper) (llm.Model, error), r io.Reader) string {
	t.Helper()
	b := &body{Reader: r}
	m, err := newModel(b)
	if err != nil {
		t.Fatal(err)
	}
	req := dialog.Request{Messages: []dialog.Message{{Role: dialog.User, Content: "Well?"}}}
	var out strings.Builder
	var failed error
	calls := 0
	for d, err := range m.Generate(context.Background(), req) {
		if failed != nil {
			t.Fatal("something came after an error")
		}
		out.WriteString(d.Text)
		if c := d.Call; c != nil {
			if calls++; !json.Valid(c.Arguments) || calls > llm.MaxCalls {
				t.Errorf("call %d: the arguments of %q are %q", calls, c.Name, c.Arguments)
			}
			fmt.Fprintf(&out, " [%s:%s %s]", c.ID, c.Name, c.Arguments)
		}
		if d.Usage != nil {
			fmt.Fprintf(&out, " %d+%d", d.Usage.Input, d.Usage.Output)
		}
		if failed = err; err != nil {
			e := new(dialog.ModelError)
			if !errors.As(err, &e) {
				t.Fatalf("%v is no ModelError", err)
			}
			fmt.Fprintf(&out, " (%s)", e.Kind)
		}
	}
	if !b.closed {
		t.Error("the body is still open")
	}
	return out.String()
}

// ReadInPieces fails the test if the answer depends on the pieces in which the stream arrives, or on how its lines end.
func ReadInPieces(t testing.TB, newModel func(http.RoundTripper) (llm.Model, error), stream []byte) {
	t.Helper()
	want := Read(t, newModel, bytes.NewReader(stream))
	if got := Read(t, newModel, iotest.OneByteReader(bytes.NewReader(stream))); got != want {
		t.Errorf("byte by byte it is %q, at once %q", got, want)
	}
	if got := Read(t, newModel, iotest.DataErrReader(bytes.NewReader(stream))); got != want {
		t.Errorf("with the end in the last read it is %q, else %q", got, want)
	}
	if bytes.ContainsRune(stream, '\r') {
		return
	}
	if got := Read(t, newModel, bytes.NewReader(bytes.ReplaceAll(stream, []byte("\n"), []byte("\r\n")))); got != want {
		t.Errorf("with CRLF it is %q, with LF %q", got, want)
	}
}

// A body is the transport to a server that answers every request with it.
type body struct {
	io.Reader
	closed bool
}

func (b *body) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: b, Request: r}, nil
}

func (b *body) Close() error {
	b.closed = true
	return nil
}
