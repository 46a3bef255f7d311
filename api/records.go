package api

import (
	"bytes"
	"net/http"
	"strconv"

	"bellbird/event"
)

// A TurnRecord is the record of a turn that is kept, without what was said. Its number goes on over restarts.
type TurnRecord struct {
	ID uint64 `json:"id"`
	event.Record
}

// usualRecords is how many are listed if nobody says how many.
const usualRecords = 20

func (o *Options) recordRoutes(t *table) {
	if o.Records != nil {
		t.handle("GET /api/turns", o.serve(func(r *http.Request) (any, error) {
			n := usualRecords
			if text := r.URL.Query().Get("limit"); text != "" {
				var err error
				if n, err = strconv.Atoi(text); err != nil || n < 1 {
					return nil, Errorf(http.StatusBadRequest, "limit = %.20q: it is a number from 1", text)
				}
			}
			all, err := o.Records()
			if err != nil {
				return nil, err
			}
			return append([]TurnRecord{}, all[:min(n, len(all))]...), nil
		}))
		t.handle("GET /api/turns/{id}", o.serve(func(r *http.Request) (any, error) {
			all, err := o.Records()
			if err != nil {
				return nil, err
			}
			id, err := strconv.ParseUint(r.PathValue("id"), 10, 64)
			for _, k := range all {
				if err == nil && k.ID == id {
					return k, nil
				}
			}
			return nil, Errorf(http.StatusNotFound, "there is no record of a turn %.20q", r.PathValue("id"))
		}))
	}
	if o.Metrics != nil {
		t.handle("GET /api/metrics", func(w http.ResponseWriter, _ *http.Request) {
			var b bytes.Buffer
			if err := o.Metrics(&b); err != nil {
				o.fail(w, err)
				return
			}
			send(w, "text/plain; version=0.0.4; charset=utf-8", http.StatusOK, b.Bytes())
		})
	}
}
