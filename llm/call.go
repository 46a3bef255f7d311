package llm

import (
	"bufio"
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net"
	"net/http"
	"time"

	"bellbird/dialog"
)

// An Attempt is one try of a request.
type Attempt struct {
	yield     func(dialog.Delta) bool
	responded bool // the server took the request
}

// Yield passes on a piece of the answer, or an empty one that tells that the model is at work. It reports false when
// nobody wants more; the attempt then returns.
func (a *Attempt) Yield(d dialog.Delta) bool { return a.yield(d) }

// NewRequest returns the HTTP request that posts body as JSON and wants a stream. What can't be JSON is a BadRequest.
func NewRequest(ctx context.Context, url string, body any) (*http.Request, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, &dialog.ModelError{Kind: dialog.BadRequest, Err: err} // a temperature that is no number
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream, application/json") // the latter for errors
	r.Header.Set("User-Agent", "bellbird")
	return r, nil
}

// Do sends the request of an attempt and looks at the response first: an error becomes a *Fault whatever its form, and
// what is no stream is refused. The body of what it returns is bounded.
func (a *Attempt) Do(client *http.Client, r *http.Request) (*http.Response, error) {
	res, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	if res.StatusCode >= 300 {
		defer res.Body.Close()
		text, err := io.ReadAll(io.LimitReader(res.Body, maxFault))
		f := ParseFault(text)
		f.Status, f.RetryAfter = res.StatusCode, retryAfter(res.Header)
		if err != nil && f.Message == "" {
			f.Message = err.Error()
		}
		return nil, f
	}
	a.responded = true
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind == "text/html" || kind == "application/json" {
		res.Body.Close()
		return nil, &dialog.ModelError{Kind: dialog.ServerFault, Err: fmt.Errorf(
			"%s answers with %s instead of a stream: is that the address of a model's API?", r.URL.Redacted(), kind)}
	}
	res.Body = &body{ReadCloser: res.Body}
	return res, nil
}

// body is that of an answer, bounded.
type body struct {
	io.ReadCloser
	n int
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.n += n; b.n > maxBody {
		return n, errTooMuch
	}
	return n, err
}

// ErrCutOff is returned by an attempt when the stream ended before the answer did.
var ErrCutOff = errors.New("the stream ended before the answer did")

// Ask has attempt ask the server until an answer begins, and passes on what it yields; nothing follows an error. The
// error is the context's own as soon as that is done, and otherwise a *dialog.ModelError. hasKey is whether the request
// carries a key.
func (s *Server) Ask(ctx context.Context, req dialog.Request, hasKey bool, yield func(dialog.Delta, error) bool,
	attempt func(context.Context, *Attempt) error) {

	callerCtx := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	deadline := time.Now().Add(s.FirstToken)
	first := time.AfterFunc(s.FirstToken, func() { cancel(errNoBeginning) })
	defer first.Stop()
	idle := time.AfterFunc(s.FirstToken+s.Idle, func() { cancel(errNoMore) })
	defer idle.Stop()

	var begun, gone bool
	pass := func(d dialog.Delta) bool {
		if ctx.Err() != nil {
			return false // nothing may follow the end, however the two came to meet
		}
		first.Stop()
		idle.Stop() // whoever listens may take his time
		begun = begun || d.Text != "" || d.Call != nil
		if gone = !yield(d, nil); gone {
			cancel(nil)
			return false
		}
		idle.Reset(s.Idle)
		return true
	}
	for n := 0; ; n++ {
		a := &Attempt{yield: pass}
		err := attempt(ctx, a)
		switch {
		case gone:
			return
		case callerCtx.Err() != nil:
			yield(dialog.Delta{}, context.Cause(callerCtx))
			return
		case ctx.Err() != nil:
			yield(dialog.Delta{}, &dialog.ModelError{Kind: dialog.Stalled, Err: context.Cause(ctx)})
			return
		case err == nil:
			return
		}
		e := explain(err, a.responded, hasKey)
		wait := pause(n, e)
		if begun || n >= s.Retries || !transient(e) || wait > untilEarliest(callerCtx, deadline) {
			if f := new(Fault); errors.As(e.Err, &f) {
				f.Message = withoutSpeech(f.Message, req)
			}
			yield(dialog.Delta{}, e)
			return
		}
		sleep(ctx, wait)
	}
}

// transient tells whether the same request may succeed in a moment.
func transient(e *dialog.ModelError) bool {
	var fault *Fault
	var netErr net.Error
	var cert x509.UnknownAuthorityError
	switch e.Kind {
	case dialog.RateLimited, dialog.CutOff:
		return true
	case dialog.ServerFault:
		return errors.As(e.Err, &fault)
	case dialog.Unreachable:
		// Whoever did not answer for seconds won't now either, and a certificate doesn't change.
		return !(errors.As(e.Err, &netErr) && netErr.Timeout()) && !errors.As(e.Err, &cert)
	}
	return false
}

// pause is how long to wait after attempt number n failed: what the server asks for, or longer each time.
func pause(n int, e *dialog.ModelError) time.Duration {
	var fault *Fault
	if errors.As(e.Err, &fault) && fault.RetryAfter > 0 {
		return fault.RetryAfter
	}
	d := 250 * time.Millisecond << min(n, 5)
	return d + rand.N(d/4) // so that not all speakers of a house come back at once
}

// untilEarliest is the time to the deadline, or to that of the context if it is earlier.
func untilEarliest(ctx context.Context, deadline time.Time) time.Duration {
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	return time.Until(deadline)
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// explain makes of what went wrong with an attempt a ModelError. responded is whether the server had taken the request.
func explain(err error, responded, hasKey bool) *dialog.ModelError {
	var known *dialog.ModelError
	var fault *Fault
	var redirect *redirectError
	var syntax *json.SyntaxError
	kind := dialog.Unreachable
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &fault):
		return &dialog.ModelError{Kind: fault.kind(hasKey), Err: fault}
	case errors.As(err, &redirect):
		kind, err = dialog.ServerFault, redirect
	case errors.Is(err, errTooMuch), errors.Is(err, bufio.ErrTooLong):
		kind, err = dialog.ServerFault, errTooMuch
	case errors.As(err, &syntax):
		kind = dialog.ServerFault
	case responded, errors.Is(err, ErrCutOff):
		kind = dialog.CutOff
	}
	return &dialog.ModelError{Kind: kind, Err: err}
}
