package api

import (
	"context"
	"net/http"

	"bellbird/event"
)

// Turns are what the appliance can be asked to do as if it had been called.
type Turns interface {
	// AskIn runs a turn in a chat, "" being the active one, as if text had been heard, and waits for its end.
	AskIn(ctx context.Context, chat, text string) (event.Record, error)
	// Say speaks a text, and waits for its end.
	Say(ctx context.Context, text string) (event.Record, error)
	// Stop ends what is going on.
	Stop()
}

// maxText bounds what can be asked or said, in bytes.
const maxText = 8 << 10

func (o *Options) turnRoutes(t *table) {
	text := func(f func(ctx context.Context, chat, text string) (event.Record, error)) http.HandlerFunc {
		return o.serve(func(r *http.Request) (any, error) {
			var body struct{ Chat, Text string }
			if err := read(r, &body); err != nil {
				return nil, err
			}
			if body.Text == "" || len(body.Text) > maxText {
				return nil, Errorf(http.StatusBadRequest, "the text has to have 1 to %d bytes", maxText)
			}
			return f(r.Context(), body.Chat, body.Text)
		})
	}
	t.handle("POST /api/ask", text(o.Turns.AskIn))
	t.handle("POST /api/say", text(func(ctx context.Context, _, text string) (event.Record, error) { return o.Turns.Say(ctx, text) }))
	t.handle("POST /api/stop", o.serve(func(*http.Request) (any, error) {
		o.Turns.Stop()
		return nil, nil
	}))
}
