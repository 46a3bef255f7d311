package ota_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/ota"
	"bellbird/ota/otatest"
)

// What goes wrong is said with its cause and a remedy, changes nothing, and leaves nothing behind.
func TestRefusals(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(w *world)
		is    error
		says  string
	}{
		{"signature of another key", func(w *world) { w.o.PublicKey = newServer(t).public() }, ota.ErrSignature, "public_key"},
		{"changed manifest", func(w *world) {
			w.server.manifest = bytes.Replace(w.server.manifest, []byte("1.1.0"), []byte("1.9.0"), 1)
		}, ota.ErrSignature, ""},
		{"no manifest", func(w *world) { w.server.manifest = []byte("<html>") }, nil, "is this the address of a manifest"},
		{"huge manifest", func(w *world) { w.server.manifest = bytes.Repeat([]byte("x"), 1<<20) }, nil, "more than 16384 bytes"},
		{"another channel", func(w *world) { w.server.release.Channel = "beta"; w.server.sign() }, nil, `"stable" is configured`},
		{"wrong board", func(w *world) { w.server.offer("1.1.0", "toaster") }, ota.ErrWrongBoard, "this is \"bellbird-test\""},
		{"older", func(w *world) { w.server.offer("0.9.0", board) }, ota.ErrOlder, "--downgrade"},
		{"the same", func(w *world) { w.server.offer("1.0.0", board) }, ota.ErrOlder, ""},
		{"too large a step", func(w *world) { w.server.release.Minimum = "1.0.5"; w.server.sign() }, ota.ErrTooOld, "install version 1.0.5 first"},
		{"gone", func(w *world) { w.server.status = http.StatusNotFound }, nil, "404"},
		{"no such host", func(w *world) { w.o.URL = "http://updates.test/elsewhere" }, nil, "no such host"},
		{"clock", func(w *world) {
			w.o.URL = "https://updates.test/stable/manifest"
			w.o.ClockKnown = func() bool { return false }
		}, ota.ErrClock, "network"},
		{"in use", func(w *world) { w.busy = true }, ota.ErrBusy, "--now"},
		{"full disk", func(w *world) { w.o.Free = func() (int64, error) { return ota.Reserve, nil } }, ota.ErrNoSpace, "delete chats"},

		{"the server says another size", func(w *world) { w.server.length = 7 }, ota.ErrSize, "the server has 7 bytes"},
		{"more bytes than the manifest says", func(w *world) {
			w.server.length = -1
			w.server.bundle = append(w.server.bundle, 'x')
		}, ota.ErrSize, "sends more"},
		{"another bundle", func(w *world) { w.server.bundle[0] ^= 1 }, ota.ErrHash, "SHA-256"},
		{"bundle of another key", func(w *world) { w.server.publish("1.1.0", board, unsigned(t)) }, ota.ErrBundle, "keyring"},
		{"bundle for another board", func(w *world) {
			w.server.offer("1.1.0", "toaster")
			w.server.release.Compatible = board
			w.server.sign()
		}, ota.ErrWrongBoard, ""},
		{"bundle of another version", func(w *world) {
			w.server.release.Version = "1.1.1"
			w.server.sign()
		}, nil, "its publisher has to correct that"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				test.spoil(w)
				u := w.start()
				w.settle(u)
				err := u.Install(t.Context(), ota.Request{Asked: true})
				if err == nil || test.is != nil && !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.says) {
					t.Fatalf("error %q, want %v, and %q in it", err, test.is, test.says)
				}
				t.Log(err)
				if errors.Is(err, ota.ErrNoSpace) {
					w.o.Free = nil
					u = w.start()
					if err := u.Install(t.Context(), ota.Request{Asked: true}); err != nil {
						t.Errorf("with room again: %v", err)
					}
					return
				}
				s := u.Status()
				if s.InProgress() || !errors.Is(s.Problem, err) && s.Problem.Error() != err.Error() {
					t.Errorf("%+v", s)
				}
				left, _ := filepath.Glob(filepath.Join(w.o.Dir, "bundle*"))
				if len(left) > 0 {
					t.Errorf("%q is left", left)
				}
				during(t, u, 6*time.Hour) // a night
				if w.restarts > 0 || w.machine.Running() != "1.0.0" {
					t.Error("it was installed nevertheless")
				}
				if n := w.server.sent; n > 3*len(w.server.bundle) {
					t.Errorf("%d bytes of bundles were fetched in a night", n)
				}
			})
		})
	}
}

func unsigned(t *testing.T) []byte {
	path := filepath.Join(t.TempDir(), "bundle")
	if err := otatest.WriteBundle(path, board, "1.1.0", false); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestDowngrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.server.offer("0.9.0", board)
		u := w.start()
		w.settle(u)
		if r, err := u.Check(t.Context()); r != nil || err != nil {
			t.Errorf("%+v, %v", r, err)
		}
		if err := u.Install(t.Context(), ota.Request{Asked: true, Downgrade: true}); err != nil {
			t.Fatal(err)
		}
		u = w.boot()
		w.is(u, "0.9.0", ota.Committed, "")
	})
}

func TestFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.o.URL, w.o.PublicKey = "", ""
		u := w.start()
		w.settle(u)
		if err := u.Install(t.Context(), ota.Request{}); !errors.Is(err, ota.ErrNoSource) {
			t.Error(err)
		}
		path := filepath.Join(t.TempDir(), "bundle")
		if err := u.Install(t.Context(), ota.Request{File: path}); !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
		if err := otatest.WriteBundle(path, board, "1.0.0", true); err != nil {
			t.Fatal(err)
		}
		if err := u.Install(t.Context(), ota.Request{File: path, Asked: true}); !errors.Is(err, ota.ErrOlder) {
			t.Error(err)
		}
		if err := otatest.WriteBundle(path, board, "2.0.0", true); err != nil {
			t.Fatal(err)
		}
		if err := u.Install(t.Context(), ota.Request{File: path, Asked: true}); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(path); err != nil {
			t.Error("the user's file was removed")
		}
		w.is(w.boot(), "2.0.0", ota.Committed, "")

		// The power is cut, and the stick pulled out meanwhile.
		if err := otatest.WriteBundle(path, board, "3.0.0", true); err != nil {
			t.Fatal(err)
		}
		u = w.start()
		w.settle(u)
		ctx, cut := context.WithCancel(t.Context())
		w.machine.Step = cut
		w.o.Slots = interrupted{w.machine}
		u = w.start()
		if err := u.Install(ctx, ota.Request{File: path, Asked: true}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		w.o.Slots = w.machine
		os.Remove(path)
		u = w.boot()
		u.Step(t.Context())
		w.is(u, "2.0.0", ota.Failed, ota.Interrupted)
	})
}

// interrupted slots are being written when the program ends.
type interrupted struct{ *otatest.Machine }

func (i interrupted) Install(ctx context.Context, path string, progress func(int)) error {
	if err := i.Machine.Install(ctx, path, progress); err != nil {
		return err
	}
	i.Machine.Mark(context.Background(), "rootfs.1", ota.Active) // not done yet
	return ctx.Err()
}

// A server that stalls, and one that breaks off, are asked again for the rest.
func TestResume(t *testing.T) {
	for name, end := range map[string]error{"stall": nil, "break": errors.New("connection reset"), "end": io.EOF} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				tries := 0
				w.server.body = func(rest []byte) io.ReadCloser {
					if tries++; tries < 3 {
						return &broken{rest: rest[:64<<10], end: end, closed: make(chan struct{})}
					}
					return io.NopCloser(bytes.NewReader(rest))
				}
				u := w.start()
				w.settle(u)
				if err := u.Install(t.Context(), ota.Request{Asked: true}); err != nil {
					t.Fatal(err)
				}
				if w.server.sent != len(w.server.bundle) || len(w.server.requests) != 4 || w.server.requests[3] != "/stable/bundle bytes=131072-" {
					t.Errorf("%d bytes of %d were fetched: %q", w.server.sent, len(w.server.bundle), w.server.requests)
				}
				w.is(w.boot(), "1.1.0", ota.Committed, "")
			})
		})
	}
}

// broken sends what it has, and then fails or hangs.
type broken struct {
	rest   []byte
	end    error
	closed chan struct{}
}

func (b *broken) Read(p []byte) (int, error) {
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	if n > 0 {
		return n, nil
	}
	if b.end != nil {
		return 0, b.end
	}
	<-b.closed
	return 0, io.ErrClosedPipe
}

func (b *broken) Close() error {
	select {
	case <-b.closed:
	default:
		close(b.closed)
	}
	return nil
}

// A server that sends nothing more is given up after a while; what has come is kept for the next time.
func TestGivesUp(t *testing.T) {
	for name, want := range map[string]error{"stall": ota.ErrStalled, "break": ota.ErrCutOff} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				end := io.ErrUnexpectedEOF
				if name == "stall" {
					end = nil
				}
				sent := false
				w.server.body = func(rest []byte) io.ReadCloser {
					b := &broken{end: end, closed: make(chan struct{})}
					if !sent {
						b.rest = rest[:64<<10]
					}
					sent = true
					return b
				}
				u := w.start()
				w.settle(u)
				err := u.Install(t.Context(), ota.Request{Asked: true})
				if !errors.Is(err, want) || !strings.Contains(err.Error(), "after 65536 of ") {
					t.Fatal(err)
				}
				t.Log(err)
				if took := time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)); took > 30*time.Minute {
					t.Errorf("that took %v", took)
				}
				w.server.body, w.server.sent = nil, 0
				u = w.boot()
				during(t, u, 2*time.Hour) // somebody has asked for it
				if w.restarts == 0 || w.server.sent != len(w.server.bundle)-64<<10 {
					t.Errorf("%d restarts, %d bytes fetched", w.restarts, w.server.sent)
				}
			})
		})
	}
}

// What lies there of an interrupted download may be spoilt, or of another release; and some servers don't do parts.
func TestSpoiltPart(t *testing.T) {
	for name, spoil := range map[string]func(w *world, part string){
		"spoilt":   func(_ *world, part string) { os.WriteFile(part, make([]byte, 1000), 0o600) },
		"too long": func(_ *world, part string) { os.WriteFile(part, make([]byte, 1<<20), 0o600) },
		"no ranges": func(w *world, part string) {
			os.WriteFile(part, w.server.bundle[:1000], 0o600)
			w.server.ranges = false
		},
		"complete": func(w *world, part string) { os.WriteFile(part, w.server.bundle, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				u := w.start()
				w.settle(u)
				spoil(w, filepath.Join(w.o.Dir, "bundle.part"))
				if err := u.Install(t.Context(), ota.Request{Asked: true}); err != nil {
					t.Fatal(err)
				}
				w.is(w.boot(), "1.1.0", ota.Committed, "")
			})
		})
	}
}

// The same with a server of the standard library, on the network of the machine.
func TestRealServer(t *testing.T) {
	w := newWorld(t)
	w.server.offer("1.1.0", board)
	dir := t.TempDir()
	for name, text := range map[string][]byte{"manifest": w.server.manifest, "bundle": w.server.bundle} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ranges := make(chan string, 10)
	files := http.FileServer(http.Dir(dir))
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		ranges <- r.URL.Path + " " + r.Header.Get("Range")
		files.ServeHTTP(rw, r)
	}))
	defer s.Close()
	w.o.URL, w.o.Transport = s.URL+"/manifest", nil
	u := w.start()
	w.settle(u)
	if err := os.WriteFile(filepath.Join(w.o.Dir, "bundle.part"), w.server.bundle[:100000], 0o600); err != nil {
		t.Fatal(err)
	}
	if err := u.Install(t.Context(), ota.Request{Asked: true}); err != nil {
		t.Fatal(err)
	}
	if a, b := <-ranges, <-ranges; a != "/manifest " || b != "/bundle bytes=100000-" {
		t.Errorf("requests %q and %q", a, b)
	}
	s.Close()
	if _, err := u.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Error(err)
	}
}

// A disk that is full in earnest.
func TestFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a small file system needs root")
	}
	w := newWorld(t)
	if err := os.MkdirAll(w.o.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=128k", "none", w.o.Dir).CombinedOutput(); err != nil {
		t.Skipf("no file system can be mounted here: %s", out)
	}
	defer exec.Command("umount", w.o.Dir).Run()
	u := w.start()
	w.settle(u)
	err := u.Install(t.Context(), ota.Request{Asked: true})
	if !errors.Is(err, ota.ErrNoSpace) {
		t.Errorf("it is said beforehand: %v", err)
	}
	w.o.Free = func() (int64, error) { return 1 << 40, nil }
	u = w.start()
	if err := u.Install(t.Context(), ota.Request{Asked: true}); !errors.Is(err, ota.ErrNoSpace) {
		t.Errorf("it turns out while it is written: %v", err)
	}
	if got := u.Status().Version; got != "1.1.0" {
		t.Errorf("what is known of it: %q", got)
	}
}
