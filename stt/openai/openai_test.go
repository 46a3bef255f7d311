package openai_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bellbird/audio"
	"bellbird/dialog"
	"bellbird/internal/speechapi"
	"bellbird/stt/openai"
)

func start(t *testing.T, h http.HandlerFunc, o openai.Options) *openai.Recognizer {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	o.BaseURL, o.Model = srv.URL+"/v1", "whisper-1"
	r, err := openai.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func feed(frames ...audio.Frame) <-chan audio.Frame {
	c := make(chan audio.Frame, len(frames))
	for _, f := range frames {
		c <- f
	}
	close(c)
	return c
}

func TestRecognize(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("sesame\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, func(w http.ResponseWriter, r *http.Request) {
		file, _, err := r.FormFile("file")
		if err != nil {
			t.Error(err)
			return
		}
		wav, err := audio.NewWAVReader(file)
		if err != nil {
			t.Error(err)
			return
		}
		samples := make([]int16, 2000)
		n, err := wav.Read(samples)
		if err != nil || !wav.Format().Inner() || n != 2*audio.FrameSize || samples[0] != 7 || samples[audio.FrameSize] != -8 {
			t.Errorf("%d samples, %v, %v", n, wav.Format(), err)
		}
		got := []string{r.URL.Path, r.Header.Get("Authorization"), r.FormValue("model"), r.FormValue("language"), r.FormValue("prompt"), r.FormValue("response_format")}
		if want := []string{"/v1/audio/transcriptions", "Bearer sesame", "whisper-1", "en", "Bellbird", "json"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		io.WriteString(w, `{"text": " Turn on the light.\n", "usage": {}}`)
	}, openai.Options{Options: speechapi.Options{KeyFile: key}, Language: "en", Prompt: "Bellbird"})
	if text, err := r.Recognize(t.Context(), feed(audio.Frame{7}, audio.Frame{-8})); err != nil || text != "Turn on the light." {
		t.Errorf("%q, %v", text, err)
	}
}

func TestNothingSaid(t *testing.T) {
	r := start(t, func(http.ResponseWriter, *http.Request) { t.Error("it was asked") }, openai.Options{})
	if text, err := r.Recognize(t.Context(), feed()); err != nil || text != "" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestPlainText(t *testing.T) {
	r := start(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		io.WriteString(w, "hello\n")
	}, openai.Options{})
	if text, err := r.Recognize(t.Context(), feed(audio.Frame{})); err != nil || text != "hello" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestRecognizeFails(t *testing.T) {
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			io.WriteString(w, body)
		}
	}
	hang := func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}
	for _, tt := range []struct {
		name   string
		server http.HandlerFunc
		kind   dialog.ModelErrorKind
		text   string
	}{
		{"no key", answer(401, `{"error":{"message":"key?"}}`), dialog.NoKey, "status 401: key?"},
		{"no such model", answer(404, `{"error":{"code":"model_not_found","message":"no whisper-1"}}`), dialog.UnknownModel, "model_not_found"},
		{"broken", answer(500, "oops"), dialog.ServerFault, "status 500"},
		{"not understood", answer(422, `{"detail":"what?"}`), dialog.BadRequest, "what?"},
		{"redirects", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://elsewhere/", http.StatusTemporaryRedirect)
		}, dialog.Unreachable, "elsewhere"},
		{"something else", answer(200, "<html>"), dialog.ServerFault, "no transcription"},
		{"no text", answer(200, `{"segments":[]}`), dialog.ServerFault, "there is no text in it"},
		{"too much", answer(200, strings.Repeat(" ", 300<<10)), dialog.ServerFault, "too much"},
		{"never answers", hang, dialog.Stalled, "no answer in time"},
		{"stops within", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, `{"text":`)
		}, dialog.CutOff, "unexpected EOF"},
		{"hangs within", func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, `{"text":`)
			w.(http.Flusher).Flush()
			hang(w, r)
		}, dialog.Stalled, "no answer in time"},
	} {
		var wait time.Duration // the default
		if tt.kind == dialog.Stalled {
			wait = 200 * time.Millisecond
		}
		r := start(t, tt.server, openai.Options{Options: speechapi.Options{Wait: wait}})
		_, err := r.Recognize(t.Context(), feed(audio.Frame{}))
		var e *dialog.ModelError
		if !errors.As(err, &e) || e.Kind != tt.kind || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestCancelled(t *testing.T) {
	asked := make(chan bool)
	r := start(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		close(asked)
		<-r.Context().Done()
	}, openai.Options{})
	why := errors.New("barge-in")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { <-asked; cancel(why) }()
	if _, err := r.Recognize(ctx, feed(audio.Frame{})); !errors.Is(err, why) {
		t.Errorf("while the server works: %v", err)
	}
	if _, err := r.Recognize(ctx, make(chan audio.Frame)); !errors.Is(err, why) {
		t.Errorf("while it is spoken: %v", err)
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []openai.Options{
		{}, {Options: speechapi.Options{Model: "m", BaseURL: "speech.local:8000"}}, {Options: speechapi.Options{Model: "m", BaseURL: "ftp://x/"}},
	} {
		if _, err := openai.New(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
	own, err := openai.New(openai.Options{Options: speechapi.Options{Model: "whisper-1"}})
	if err != nil {
		t.Fatal(err)
	}
	var e *dialog.ModelError
	if _, err := own.Recognize(t.Context(), feed(audio.Frame{})); !errors.As(err, &e) || e.Kind != dialog.NoKey {
		t.Errorf("OpenAI's own server without a key: %v", err)
	}
}
