package wyoming_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bellbird/audio"
	"bellbird/wyoming"
	"bellbird/wyoming/wyomingtest"
)

func TestRead(t *testing.T) {
	for _, tt := range []struct {
		name, in, want string
	}{
		{"bare", `{"type":"describe"}` + "\n", "describe  "},
		{"old", `{"type":"a","version":"1.0.0","data":{"x":1},"data_length":null,"payload_length":null}` + "\n", `a {"x":1} `},
		{"merged", `{"type":"a","data":{"x":1,"y":2},"data_length":7}` + "\n" + `{"x":3}`, `a {"x":3,"y":2} `},
		{"payload", `{"type":"a","data_length":2,"payload_length":3}` + "\n" + `{}xyz`, "a  xyz"},
		{"empty data", `{"type":"a","data":{}}` + "\n", "a  "},
		{"nothing", "", "EOF"},
		{"half a line", `{"type":`, "unexpected EOF"},
		{"half of the data", `{"type":"a","data_length":9}` + "\n" + `{"x"`, "unexpected EOF"},
		{"half of the payload", `{"type":"a","payload_length":9}` + "\n" + `1234`, "unexpected EOF"},
		{"no data", `{"type":"a","data_length":9}` + "\n", "unexpected EOF"},
		{"no JSON", "hello\n", "this is no event: invalid character 'h' looking for beginning of value"},
		{"no type", "{}\n", "this is no event: it has no type"},
		{"data of another kind", `{"type":"a","data":[1]}` + "\n",
			`event "a": its data are no JSON object: json: cannot unmarshal array into Go value of type map[string]json.RawMessage`},
		{"below zero", `{"type":"a","payload_length":-1}` + "\n", `event "a": a length below zero`},
		{"huge payload", `{"type":"a","payload_length":99999999}` + "\n", `event "a": an event is too big`},
		{"huge data", `{"type":"a","data_length":99999999}` + "\n", `event "a": an event is too big`},
		{"endless line", strings.Repeat("x", wyoming.MaxLine+1), "an event is too big"},
	} {
		e, err := wyoming.NewReader(strings.NewReader(tt.in)).Read()
		got := fmt.Sprintf("%s %s %s", e.Type, e.Data, e.Payload)
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestWriteIsRead(t *testing.T) {
	var b bytes.Buffer
	events := []wyoming.Event{
		{Type: wyoming.Describe}, wyoming.NewEvent(wyoming.Transcript, wyoming.Text{Text: "grüß dich"}), wyoming.Sound(audio.Frame{1, -2}),
	}
	for _, e := range events {
		if err := wyoming.Write(&b, e); err != nil {
			t.Fatal(err)
		}
	}
	r := wyoming.NewReader(&b)
	for _, want := range events {
		got, err := r.Read()
		if err != nil || got.Type != want.Type || !bytes.Equal(got.Payload, want.Payload) || len(got.Data) != len(want.Data) {
			t.Errorf("%v is read as %v, %v", want, got, err)
		}
	}
	if _, err := r.Read(); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
	if err := wyoming.Write(io.Discard, wyoming.Event{Type: "a", Payload: make([]byte, wyoming.MaxPayload+1)}); !errors.Is(err, wyoming.ErrTooBig) {
		t.Errorf("a huge event: %v", err)
	}
}

// FuzzRead: whatever comes, it ends, takes no more than it may, and what was read can be written and read again.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"type":"a","data":{"x":1},"data_length":7,"payload_length":2}` + "\n" + `{"y":3}..`))
	f.Add([]byte(`{"type":"audio-chunk","data_length":-5}` + "\n"))
	f.Add([]byte("{\"type\":\"a\"}\n{\"type\":\"b\",\"payload_length\":1}\nx"))
	f.Fuzz(func(t *testing.T, in []byte) {
		r := wyoming.NewReader(bytes.NewReader(in))
		for range len(in) + 1 {
			e, err := r.Read()
			if err != nil {
				return
			}
			if len(e.Data) > 8*(wyoming.MaxLine+wyoming.MaxData) || len(e.Payload) > wyoming.MaxPayload {
				t.Fatalf("%d bytes of data, %d of payload", len(e.Data), len(e.Payload))
			}
			var info wyoming.Info
			_ = e.Into(&info)
			var b bytes.Buffer
			if err := wyoming.Write(&b, e); err != nil {
				continue // its data grew by what was escaped
			}
			again, err := wyoming.NewReader(&b).Read()
			if err != nil || again.Type != e.Type || !bytes.Equal(again.Data, e.Data) || !bytes.Equal(again.Payload, e.Payload) {
				t.Fatalf("%v is read again as %v, %v", e, again, err)
			}
		}
		t.Fatal("it doesn't end")
	})
}

func TestAddresses(t *testing.T) {
	for address, ok := range map[string]bool{
		"speech.local:10300": true, "tcp://[::1]:10300": true, "unix:///run/piper.sock": true,
		"": false, "speech.local": false, "http://speech.local:10300": false, "unix://host/x": false, "tcp://:10300": false, "tcp://h:1/x": false,
	} {
		s := wyoming.Service{Address: address}
		if err := s.SetDefaults(); (err == nil) != ok {
			t.Errorf("%q: %v", address, err)
		}
	}
}

func TestDescribe(t *testing.T) {
	srv, err := wyomingtest.Start(wyomingtest.Service{Info: wyoming.Info{Voices: []wyoming.Program{{Name: "piper", StreamsSpeech: true}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	s := wyoming.Service{Address: srv.Address}
	if err := s.SetDefaults(); err != nil {
		t.Fatal(err)
	}
	info, err := s.Describe(t.Context())
	if err != nil || len(info.Voices) != 1 || info.Voices[0].Name != "piper" || !info.Voices[0].StreamsSpeech || info.Recognisers != nil {
		t.Errorf("%+v, %v", info, err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if _, err := s.Describe(ctx); !errors.Is(err, why) {
		t.Errorf("cancelled: %v", err)
	}
}

// What can be wrong with a service before it says anything, on a Unix socket.
func TestDescribeFails(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	s := wyoming.Service{Address: "unix://" + socket}
	if err := s.SetDefaults(); err != nil {
		t.Fatal(err)
	}
	fails := func(want string) {
		t.Helper()
		if _, err := s.Describe(t.Context()); err == nil || err.Error() != s.Address+": "+want {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	fails("no service listens there: is it running, and is the address right?")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	answer := make(chan func(net.Conn), 1)
	go func() {
		for f := range answer {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wyoming.NewReader(conn).Read()
			go func() { f(conn); conn.Close() }()
		}
	}()
	defer close(answer)
	done := make(chan struct{})
	defer close(done)
	for want, f := range map[string]func(net.Conn){
		"no answer within 50ms: " + os.ErrDeadlineExceeded.Error():         func(net.Conn) { <-done },
		"the service closed the connection before its answer was complete": func(net.Conn) {},
		"the service says: boom": func(c net.Conn) { wyoming.Write(c, wyoming.NewEvent(wyoming.Failure, wyoming.Fault{Text: "boom"})) },
		"this is no event: invalid character 'H' looking for beginning of value": func(c net.Conn) { io.WriteString(c, "HTTP/1.1 400\r\n") },
		"it doesn't say what it has: is it a Wyoming service?": func(c net.Conn) {
			for range 1000 {
				wyoming.Write(c, wyoming.Event{Type: "ping"})
			}
		},
	} {
		s.Wait = 10 * time.Second
		if strings.HasPrefix(want, "no answer") {
			s.Wait = 50 * time.Millisecond
		}
		answer <- f
		fails(want)
	}
}
