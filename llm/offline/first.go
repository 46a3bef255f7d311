package offline

import (
	"context"
	"iter"
	"slices"

	"bellbird/dialog"
	"bellbird/intents"
)

// First answers by itself what the templates cover, and has another model answer everything else: a timer needs no
// server. A turn is answered by one of the two from its beginning to its end.
type First struct {
	Grammar *intents.Set
	Local   *Agent
	Other   interface {
		Generate(ctx context.Context, req dialog.Request) iter.Seq2[dialog.Delta, error]
	}
}

// Generate answers the request.
func (f First) Generate(ctx context.Context, req dialog.Request) iter.Seq2[dialog.Delta, error] {
	for _, m := range slices.Backward(req.Messages) {
		if m.Role == dialog.User && !m.PerTurn {
			if _, ok := f.Grammar.Match(m.Content); ok {
				return f.Local.Generate(ctx, req)
			}
			break
		}
	}
	return f.Other.Generate(ctx, req)
}
