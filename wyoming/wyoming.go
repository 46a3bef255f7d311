// Package wyoming speaks the protocol of the Wyoming speech services, such as faster-whisper and Piper: events over a
// connection, each a line of JSON, perhaps more JSON, and perhaps sound. It knows the events and how to ask a service what
// it has. It recognises and speaks nothing: stt/wyoming and tts/wyoming do that with it.
package wyoming

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// What the other side may send. A line may hold the list of all voices of a service, which some write into it.
const (
	MaxLine    = 1 << 20
	MaxData    = 4 << 20
	MaxPayload = 4 << 20 // a minute and a half at 22050 Hz
)

// An Event is what goes over the connection, in either direction.
type Event struct {
	Type    string
	Data    json.RawMessage // a JSON object; empty is one without members
	Payload []byte          // sound, for those that have some
}

// ErrTooBig is an event that is larger than the other side may make it.
var ErrTooBig = errors.New("an event is too big")

// NewEvent is an event whose data are v as JSON; nil is none. What can't be JSON is a mistake of the caller's, and panics.
func NewEvent(typ string, v any) Event {
	e := Event{Type: typ}
	if v == nil {
		return e
	}
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("wyoming: event %q: %v", typ, err))
	}
	e.Data = data
	return e
}

// Into reads the data into v.
func (e Event) Into(v any) error {
	if len(e.Data) == 0 {
		return nil
	}
	if err := json.Unmarshal(e.Data, v); err != nil {
		return fmt.Errorf("event %q: %w", e.Type, err)
	}
	return nil
}

// protocolVersion is what the line says of itself. Nobody looks at it.
const protocolVersion = "1.8.0"

// header is the line of an event.
type header struct {
	Type          string          `json:"type"`
	Version       string          `json:"version,omitempty"`
	Data          json.RawMessage `json:"data,omitempty"`
	DataLength    int             `json:"data_length,omitempty"`
	PayloadLength int             `json:"payload_length,omitempty"`
}

// Write writes an event at once.
func Write(w io.Writer, e Event) error {
	if len(e.Data) > MaxData || len(e.Payload) > MaxPayload {
		return fmt.Errorf("event %q: %w", e.Type, ErrTooBig)
	}
	line, err := json.Marshal(header{Type: e.Type, Version: protocolVersion, DataLength: len(e.Data), PayloadLength: len(e.Payload)})
	if err != nil {
		return err
	}
	all := make([]byte, 0, len(line)+1+len(e.Data)+len(e.Payload))
	all = append(append(append(append(all, line...), '\n'), e.Data...), e.Payload...)
	_, err = w.Write(all)
	return err
}

// A Reader reads events.
type Reader struct{ r *bufio.Reader }

// NewReader returns a reader of what r reads.
func NewReader(r io.Reader) *Reader { return &Reader{bufio.NewReaderSize(r, 4096)} }

// Read returns the next event. The error is io.EOF between two events, io.ErrUnexpectedEOF within one, ErrTooBig, what the
// connection has, or says what isn't as the protocol wants it; nothing can be read after it.
func (r *Reader) Read() (Event, error) {
	line, err := r.line()
	if err != nil {
		return Event{}, err
	}
	var h header
	if err := json.Unmarshal(line, &h); err != nil {
		return Event{}, fmt.Errorf("this is no event: %w", err)
	}
	switch {
	case h.Type == "":
		return Event{}, errors.New("this is no event: it has no type")
	case h.DataLength < 0 || h.PayloadLength < 0:
		return Event{}, fmt.Errorf("event %q: a length below zero", short(h.Type))
	case h.DataLength > MaxData || h.PayloadLength > MaxPayload:
		return Event{}, fmt.Errorf("event %q: %w", short(h.Type), ErrTooBig)
	}
	e := Event{Type: h.Type, Data: h.Data}
	more, err := r.bytes(h.DataLength)
	if err != nil {
		return Event{}, err
	}
	if e.Data, err = merge(h.Data, more); err != nil {
		return Event{}, fmt.Errorf("event %q: %w", short(h.Type), err)
	}
	if e.Payload, err = r.bytes(h.PayloadLength); err != nil {
		return Event{}, err
	}
	return e, nil
}

// line reads up to the end of a line, without it.
func (r *Reader) line() ([]byte, error) {
	var all []byte
	for {
		part, err := r.r.ReadSlice('\n')
		if len(all)+len(part) > MaxLine {
			return nil, ErrTooBig
		}
		all = append(all, part...)
		switch {
		case err == nil:
			return all[:len(all)-1], nil
		case err == io.EOF && len(all) > 0:
			return nil, io.ErrUnexpectedEOF
		case err != bufio.ErrBufferFull:
			return nil, err
		}
	}
}

// bytes reads n bytes, and takes memory only for what really comes.
func (r *Reader) bytes(n int) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	var b bytes.Buffer
	got, err := io.CopyN(&b, r.r, int64(n))
	if err == io.EOF && got < int64(n) {
		err = io.ErrUnexpectedEOF
	}
	return b.Bytes(), err
}

// merge is the object of the line with the members of the one behind it, which replace those of the same name.
func merge(line, more []byte) (json.RawMessage, error) {
	if len(line) == 0 && len(more) == 0 {
		return nil, nil
	}
	members := make(map[string]json.RawMessage)
	for _, object := range [][]byte{line, more} {
		if len(object) == 0 {
			continue
		}
		if err := json.Unmarshal(object, &members); err != nil {
			return nil, fmt.Errorf("its data are no JSON object: %w", err)
		}
	}
	if len(members) == 0 {
		return nil, nil
	}
	return json.Marshal(members)
}

// short is the beginning of a text that may be anything, for an error.
func short(text string) string {
	if len(text) > 40 {
		text = text[:40]
	}
	return text
}
