package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"bellbird/event"
)

const (
	// eventQueue is how many facts a reader may be behind before it loses some.
	eventQueue = 256

	// maxStreams is how many readers there can be.
	maxStreams = 32

	// keepAlive is how often a stream says that it is still there when there is nothing to tell.
	keepAlive = 15 * time.Second
)

// streams are the readers of events.
type streams struct {
	o    *Options
	open atomic.Int32
}

// serve streams the facts as server-sent events (WHATWG HTML, section 9.2): the event's name is the fact's, and its
// data the fact in JSON. ?kind=turn_ended&kind=... chooses some. A reader that is too slow is told how many it missed,
// with the event "dropped"; one that doesn't read at all is left. Facts of private chats are left out.
func (s *streams) serve(w http.ResponseWriter, r *http.Request) {
	if s.open.Add(1) > maxStreams {
		s.open.Add(-1)
		w.Header().Set("Retry-After", "10")
		s.o.fail(w, Errorf(http.StatusServiceUnavailable, "%d programs follow the events already: close one", maxStreams))
		return
	}
	defer s.open.Add(-1)
	wanted := r.URL.Query()["kind"]
	sub := s.o.Bus.Subscribe(eventQueue)
	defer sub.Close()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	c := http.NewResponseController(w)
	write := func(text []byte) bool {
		_ = c.SetWriteDeadline(time.Now().Add(writeTimeout))
		_, err := w.Write(text)
		return err == nil && c.Flush() == nil
	}
	if !write(nil) {
		return
	}
	tick := time.NewTicker(keepAlive)
	defer tick.Stop()
	var dropped uint64
	for {
		var out bytes.Buffer
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
			out.WriteString(": still here\n\n")
		case f := <-sub.C:
			s.tell(&out, f, wanted)
			if d := sub.Dropped(); d > dropped {
				fmt.Fprintf(&out, "event: dropped\ndata: %d\n\n", d-dropped)
				dropped = d
			}
		}
		if out.Len() > 0 && !write(out.Bytes()) {
			return
		}
	}
}

// tell writes a fact, if it is wanted and may be told.
func (s *streams) tell(out *bytes.Buffer, f event.Fact, wanted []string) {
	kind := Kind(f)
	if len(wanted) > 0 && !slices.Contains(wanted, kind) {
		return
	}
	f, ok := public(f)
	if !ok {
		return
	}
	data, err := json.Marshal(f)
	if err != nil {
		s.o.Logger.Error("a fact can't be told", "kind", kind, "err", err)
		return
	}
	fmt.Fprintf(out, "event: %s\ndata: %s\n\n", kind, data)
}

// public is what may be told of a fact. Nothing may of one of a private chat; a timer that was set in one has no name.
func public(f event.Fact) (event.Fact, bool) {
	if p, ok := f.(interface{ OfPrivateChat() bool }); ok && p.OfPrivateChat() {
		return nil, false
	}
	if t, ok := f.(event.TimerChanged); ok && t.Private {
		t.Name = ""
		return t, true
	}
	return f, true
}

// Kind is the name of a fact's type in snake case, such as "turn_ended".
func Kind(f event.Fact) string {
	_, name, _ := strings.Cut(fmt.Sprintf("%T", f), ".")
	var b strings.Builder
	for i, r := range name {
		if r >= 'A' && r <= 'Z' {
			if i > 0 {
				b.WriteByte('_')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}
