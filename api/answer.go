package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// How a request is read, and how it is answered.

// An Error is what a part answers when the caller is to blame, or has to know the status. Any other error is an internal
// one.
type Error struct {
	Status  int // of HTTP
	Message string
}

func (e *Error) Error() string { return e.Message }

// Errorf makes an Error.
func Errorf(status int, format string, args ...any) error {
	return &Error{status, fmt.Sprintf(format, args...)}
}

// A route reads a request and returns what to answer, nil being nothing, or an error.
type route func(r *http.Request) (any, error)

// serve makes a handler of a route.
func (o *Options) serve(f route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := receive(w, r); err != nil {
			o.fail(w, err)
			return
		}
		v, err := f(r)
		switch {
		case err != nil:
			o.fail(w, err)
		case v == nil:
			w.WriteHeader(http.StatusNoContent)
		default:
			o.reply(w, http.StatusOK, v)
		}
	}
}

// receive has the body of the request in memory, so that nobody has to wait for it any more.
func receive(w http.ResponseWriter, r *http.Request) error {
	c := http.NewResponseController(w)
	// Errors of the deadlines: there are none on a recorder of tests.
	_ = c.SetReadDeadline(time.Now().Add(readTimeout))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	_ = c.SetReadDeadline(time.Time{}) // or it would end a turn that takes longer
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return Errorf(http.StatusRequestEntityTooLarge, "the request is too large: it may have %d bytes", maxBody)
	case err != nil:
		return Errorf(http.StatusBadRequest, "the request can't be read: %v", err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

func (o *Options) fail(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	var e *Error
	if errors.As(err, &e) {
		status = e.Status
	} else {
		o.Logger.Error("a request", "err", err)
	}
	o.reply(w, status, map[string]string{"error": err.Error()})
}

func (o *Options) reply(w http.ResponseWriter, status int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		o.Logger.Error("an answer can't be written", "err", err)
		status, text = http.StatusInternalServerError, []byte(`{"error":"the answer can't be written"}`)
	}
	send(w, "application/json", status, append(text, '\n'))
}

// send writes an answer. A reader that doesn't take it is left.
func send(w http.ResponseWriter, kind string, status int, body []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-store")
	c := http.NewResponseController(w)
	_ = c.SetWriteDeadline(time.Now().Add(writeTimeout))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the caller is gone, if anything
	if c.Flush() == nil {
		_ = c.SetWriteDeadline(time.Time{}) // the connection may be used again
	}
}

// read decodes a request's body, which must be one value, and not null.
func read(r *http.Request, dst any) error {
	var text json.RawMessage
	d := json.NewDecoder(r.Body)
	err := d.Decode(&text)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("there is more than one value")
		} else if string(text) == "null" {
			err = errors.New("it is null")
		} else {
			d := json.NewDecoder(bytes.NewReader(text))
			d.DisallowUnknownFields()
			err = d.Decode(dst)
		}
	}
	if err != nil {
		return Errorf(http.StatusBadRequest, "the request can't be read: %v", err)
	}
	return nil
}
