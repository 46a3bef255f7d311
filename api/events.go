package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"bellbird/event"
)

// eventQueue is how many facts a reader may be behind before it loses some.
const eventQueue = 256

// keepAlive is how often a stream says that it is still there when there is nothing to tell.
const keepAlive = 15 * time.Second

// events streams the facts as server-sent events (WHATWG HTML, section 9.2): the event's name is the fact's, and its
// data the fact in JSON. ?kind=turn_ended&kind=... chooses some. A reader that is too slow is told how many it missed,
// with the event "dropped". Facts of private chats are left out.
func (o *Options) events(w http.ResponseWriter, r *http.Request) {
	wanted := r.URL.Query()["kind"]
	sub := o.Bus.Subscribe(eventQueue)
	defer sub.Close()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	flush := http.NewResponseController(w).Flush
	if flush() != nil {
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
			if kind := Kind(f); !private(f) && (len(wanted) == 0 || slices.Contains(wanted, kind)) {
				data, err := json.Marshal(f)
				if err != nil {
					o.Logger.Error("a fact can't be told", "kind", kind, "err", err)
					continue
				}
				fmt.Fprintf(&out, "event: %s\ndata: %s\n\n", kind, data)
			}
			if d := sub.Dropped(); d > dropped {
				fmt.Fprintf(&out, "event: dropped\ndata: %d\n\n", d-dropped)
				dropped = d
			}
		}
		if out.Len() == 0 {
			continue
		}
		if _, err := w.Write(out.Bytes()); err != nil || flush() != nil {
			return
		}
	}
}

// private reports whether a fact is of a private chat's turn.
func private(f event.Fact) bool {
	p, ok := f.(interface{ OfPrivateChat() bool })
	return ok && p.OfPrivateChat()
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
