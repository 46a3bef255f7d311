// Package llmtest has servers that speak the APIs of the language models, for tests and measurements: they answer as they
// are told, in every way that goes wrong, too, and account for their prompt cache as the real ones do. They understand
// nothing of what they are asked.
package llmtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"bellbird/dialog"
)

// A Reply is what a server answers to one request.
type Reply struct {
	// Status is that of an error, with Body and Header; 0 is an answer.
	Status int
	Body   string
	Header map[string]string

	// Text comes in as many pieces, then the calls.
	Text  []string
	Calls []dialog.ToolCall

	// Events, if there are any, are sent in place of Text and Calls: the data of each event as it is, or
	// "" for a comment.
	Events []string

	// Finish is why the answer ends, in the API's word; "" is the usual one.
	Finish string

	// CutOff breaks the connection in place of the end. Stall sends nothing more until the client goes away.
	CutOff, Stall bool
}

// A Request is what a server was asked.
type Request struct {
	Path   string
	Header http.Header
	Body   []byte
	Usage  dialog.Usage // what the server said it took
}

// An api writes the replies of one API, and counts.
type api interface {
	// usage counts a request, and remembers it for the next. An error is that the API would refuse it.
	usage(body []byte, output int) (dialog.Usage, error)
	events(r Reply, u dialog.Usage) []event
	fault(status int, message string) string
}

type event struct{ name, data string }

// A Server is one of the APIs, on a port of this machine.
type Server struct {
	*httptest.Server
	api api

	// Asked gets a value for each request, and Gone one for each client that went away from a reply that stalls. What
	// nobody takes from them is dropped.
	Asked, Gone chan struct{}

	mu       sync.Mutex
	replies  []Reply
	requests []Request
}

func newServer(a api, replies []Reply) *Server {
	s := &Server{api: a, replies: replies, Asked: make(chan struct{}, 64), Gone: make(chan struct{}, 64)}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	return s
}

// Reply has the server answer so next, after what it was told before. The last reply is given again and again.
func (s *Server) Reply(r ...Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replies = append(s.replies, r...)
}

// Requests are those so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// next notes the request and says what to answer.
func (s *Server) next(r *http.Request, body []byte) (Reply, dialog.Usage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	reply := Reply{Text: []string{"Yes."}}
	if len(s.replies) > 0 {
		reply = s.replies[0]
	}
	if len(s.replies) > 1 {
		s.replies = s.replies[1:]
	}
	var usage dialog.Usage
	if reply.Status == 0 {
		var err error
		if usage, err = s.api.usage(body, tokens(strings.Join(reply.Text, ""))); err != nil {
			reply = Reply{Status: http.StatusBadRequest, Body: s.api.fault(http.StatusBadRequest, err.Error())}
		}
	}
	s.requests = append(s.requests, Request{Path: r.URL.Path, Header: r.Header.Clone(), Body: body, Usage: usage})
	return reply, usage
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	reply, usage := s.next(r, body)
	tell(s.Asked)
	for k, v := range reply.Header {
		w.Header().Set(k, v)
	}
	if reply.Status != 0 {
		if reply.Body == "" {
			reply.Body = s.api.fault(reply.Status, http.StatusText(reply.Status))
		}
		if w.Header().Get("Content-Type") == "" {
			w.Header().Set("Content-Type", "application/json")
		}
		w.WriteHeader(reply.Status)
		io.WriteString(w, reply.Body)
		return
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w)
	flush.Flush()
	for _, e := range s.api.events(reply, usage) {
		if e.data == "" {
			io.WriteString(w, ": at work\n\n") // a comment, which means nothing
			flush.Flush()
			continue
		}
		if e.name != "" {
			fmt.Fprintf(w, "event: %s\n", e.name)
		}
		fmt.Fprintf(w, "data: %s\n\n", e.data)
		flush.Flush()
	}
	switch {
	case reply.Stall:
		<-r.Context().Done()
		tell(s.Gone)
	case reply.CutOff:
		panic(http.ErrAbortHandler)
	}
}

func tell(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// tokens counts roughly as the models do for English.
func tokens(text string) int { return (len(text) + 3) / 4 }

func quote(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings, numbers and maps of them
	}
	return string(b)
}
