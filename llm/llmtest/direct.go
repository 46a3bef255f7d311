package llmtest

import (
	"context"
	"io"
	"net/http"
)

// Direct returns a transport that calls the server in place of connecting to it, so that a test can run on the time of
// testing/synctest. The server itself must be made outside of the bubble.
func Direct(s *Server) http.RoundTripper { return direct{s.Config.Handler} }

type direct struct{ handler http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	read, write := io.Pipe()
	context.AfterFunc(ctx, func() { write.CloseWithError(context.Cause(ctx)) })
	w := &writer{header: http.Header{}, body: write, begun: make(chan int, 1)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() {
			if recover() != nil { // http.ErrAbortHandler
				write.CloseWithError(io.ErrUnexpectedEOF)
			}
		}()
		d.handler.ServeHTTP(w, r.WithContext(ctx))
		write.Close()
	}()
	select {
	case status := <-w.begun:
		return &http.Response{
			StatusCode: status, Header: w.header.Clone(), Request: r, ProtoMajor: 1, ProtoMinor: 1,
			Body: &directBody{read, cancel},
		}, nil
	case <-ended:
		cancel()
		return nil, io.ErrUnexpectedEOF
	case <-ctx.Done():
		cancel()
		return nil, context.Cause(ctx)
	}
}

type directBody struct {
	io.ReadCloser
	cancel func()
}

func (b *directBody) Close() error {
	b.cancel()
	return b.ReadCloser.Close()
}

type writer struct {
	header http.Header
	body   io.Writer
	begun  chan int // the status
}

func (w *writer) Header() http.Header         { return w.header }
func (w *writer) WriteHeader(status int)      { w.begun <- status }
func (w *writer) Write(p []byte) (int, error) { return w.body.Write(p) }
func (w *writer) Flush()                      {}
