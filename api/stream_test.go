package api_test

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/api"
	"bellbird/event"
)

// A stalled writer is a connection on which nothing gets through any more, once it is stalled.
type stalledWriter struct {
	header   http.Header
	mu       sync.Mutex
	written  strings.Builder
	stalled  bool
	deadline time.Time
}

func (w *stalledWriter) Header() http.Header { return w.header }
func (w *stalledWriter) WriteHeader(int)     {}
func (w *stalledWriter) FlushError() error   { return nil }
func (w *stalledWriter) SetWriteDeadline(t time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deadline = t
	return nil
}

// told is what was written.
func (w *stalledWriter) told() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.written.String()
}

func (w *stalledWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stalled && len(p) > 0 {
		if w.deadline.IsZero() {
			return len(p), nil // into a buffer that never ends
		}
		time.Sleep(time.Until(w.deadline))
		return 0, errors.New("i/o timeout")
	}
	return w.written.Write(p)
}

// A reader who doesn't read is left; meanwhile whoever publishes doesn't wait.
func TestSlowReaderIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := new(event.Bus)
		h := api.Handler(api.Options{Bus: bus})
		w := &stalledWriter{header: make(http.Header)}
		ended := make(chan struct{})
		go func() {
			h.ServeHTTP(w, httptest.NewRequest("GET", "/api/events", nil))
			close(ended)
		}()
		synctest.Wait()
		bus.Publish(event.VolumeChanged{Percent: 1})
		synctest.Wait()
		if got := w.told(); !strings.Contains(got, `"Percent":1`) {
			t.Errorf("told %q", got)
		}
		w.mu.Lock()
		w.stalled = true
		w.mu.Unlock()
		began := time.Now()
		for range 10_000 {
			bus.Publish(event.MicrophoneWell{})
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("publishing took %v", took)
		}
		<-ended
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it was left after %v", took)
		}
	})
}

// A reader who falls behind is told how much he missed, and goes on.
func TestReaderIsToldWhatItMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := new(event.Bus)
		w := &stalledWriter{header: make(http.Header)}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			api.Handler(api.Options{Bus: bus}).ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "/api/events", nil))
			close(ended)
		}()
		synctest.Wait()
		w.mu.Lock() // a write takes its time
		for range 1000 {
			bus.Publish(event.MicrophoneWell{})
		}
		w.mu.Unlock()
		synctest.Wait()
		bus.Publish(event.VolumeChanged{Percent: 9})
		synctest.Wait()
		got := w.told()
		missed := 0
		for _, m := range regexp.MustCompile(`event: dropped\ndata: (\d+)`).FindAllStringSubmatch(got, -1) {
			n, err := strconv.Atoi(m[1])
			if err != nil {
				t.Fatal(err)
			}
			missed += n
		}
		if told := strings.Count(got, "event: microphone_well"); missed == 0 || told+missed != 1000 || !strings.Contains(got, `"Percent":9`) {
			t.Errorf("%d facts are told, and that %d were missed", told, missed)
		}
		time.Sleep(24*time.Hour + time.Second) // a page that is left open
		bus.Publish(event.VolumeChanged{Percent: 11})
		synctest.Wait()
		if n := strings.Count(w.told(), ": still here\n\n"); n != 4*60*24 || !strings.Contains(w.told(), `"Percent":11`) {
			t.Errorf("in a day it said %d times that it is still there", n)
		}
		cancel()
		<-ended
	})
}

// There are only so many streams, and one that ends makes room.
func TestStreamsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := api.Handler(api.Options{Bus: new(event.Bus)})
		ctx, cancel := context.WithCancel(t.Context())
		var open sync.WaitGroup
		for range api.MaxStreams {
			open.Go(func() {
				h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", "/api/events", nil))
			})
		}
		synctest.Wait()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/api/events", nil))
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("one too many: %d %s", w.Code, w.Body)
		}
		cancel()
		open.Wait()
		again, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		w = httptest.NewRecorder()
		go func() {
			h.ServeHTTP(w, httptest.NewRequestWithContext(again, "GET", "/api/events", nil))
			close(done)
		}()
		synctest.Wait()
		stop()
		<-done
		if w.Code != 200 || w.Header().Get("Content-Type") != "text/event-stream" {
			t.Errorf("there is no room again: %d", w.Code)
		}
	})
}

// Nothing of a private chat is told.
func TestEventsArePrivate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := new(event.Bus)
		w := &stalledWriter{header: make(http.Header)}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			api.Handler(api.Options{Bus: bus}).ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "/api/events", nil))
			close(ended)
		}()
		synctest.Wait()
		for _, private := range []bool{true, false} {
			said := map[bool]string{true: "my secret", false: "no secret"}[private]
			bus.Publish(event.Heard{Text: said, Private: private})
			bus.Publish(event.Said{Text: said, Private: private})
			bus.Publish(event.TurnEnded{Record: event.Record{Heard: said, Private: private}})
			bus.Publish(event.TimerChanged{ID: 5, Name: said, Private: private})
			bus.Publish(event.ConfirmationAsked{Text: said, Private: private})
			bus.Publish(event.ViewShown{Blocks: nil, Integration: said, Private: private})
		}
		synctest.Wait()
		got := w.told()
		if strings.Contains(got, "my secret") {
			t.Errorf("it tells a secret: %s", got)
		}
		if n := strings.Count(got, "no secret"); n != 6 {
			t.Errorf("of what is none, %d of 6 are told: %s", n, got)
		}
		if n := strings.Count(got, "event: timer_changed"); n != 2 {
			t.Errorf("%d timers", n)
		}
		cancel()
		<-ended
	})
}

// A request that never ends, and one that says more than it may, end nevertheless.
func TestSlowAndLargeRequests(t *testing.T) {
	t.Parallel() // it waits until the server has had enough
	addr := serveHTTP(t, api.HTTP{}, new(desk).options(new(event.Bus)))
	answer := func(request string) string {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		go c.Write([]byte(request)) // it may be refused before all of it is there
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return err.Error()
		}
		resp.Body.Close()
		return resp.Status
	}
	head := "POST /api/say HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	if got := answer(head + "Content-Length: 2000000\r\n\r\n" + strings.Repeat("x", 2_000_000)); !strings.HasPrefix(got, "413") {
		t.Errorf("a large body: %s", got)
	}
	if got := answer(head + "X: " + strings.Repeat("x", 64<<10) + "\r\n\r\n"); !strings.HasPrefix(got, "431") {
		t.Errorf("a large header: %s", got)
	}
	if got := answer(head + "Content-Length: 10\r\nContent-Length: 20\r\n\r\n{}"); !strings.HasPrefix(got, "400") {
		t.Errorf("two lengths: %s", got)
	}
	if got := answer(head + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n{}"); !strings.HasPrefix(got, "400") {
		t.Errorf("a chunk that lies: %s", got)
	}
}
