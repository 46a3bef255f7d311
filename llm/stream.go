package llm

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// maxEvent bounds a line of a stream, and an event: a server may send a whole answer, thoughts and all, in one.
const maxEvent = 1 << 20

// A Stream reads server-sent events whose data are JSON. It takes nothing but the data: where an API has names for its
// events the data repeat them. Lines end in LF or CRLF.
type Stream struct {
	lines *bufio.Scanner
	data  []byte
	cut   bool // no empty line ended the event; it may be incomplete
}

// NewStream returns a stream of what r reads.
func NewStream(r io.Reader) *Stream {
	s := &Stream{lines: bufio.NewScanner(r)}
	s.lines.Buffer(nil, maxEvent)
	return s
}

// Next returns the data of the next event that has some, its lines joined by LF. They are valid until it is called again.
// The error is io.EOF at the end, bufio.ErrTooLong after a line or an event that is longer than 1 MiB, or the reader's own.
func (s *Stream) Next() ([]byte, error) {
	s.data = s.data[:0]
	for s.lines.Scan() {
		line := s.lines.Bytes()
		if len(line) == 0 {
			if len(s.data) > 0 {
				return s.data, nil
			}
			continue
		}
		// A comment has the empty name.
		name, value, _ := bytes.Cut(line, []byte(":"))
		if string(name) != "data" {
			continue
		}
		value = bytes.TrimPrefix(value, []byte(" "))
		if len(s.data)+len(value) > maxEvent {
			return nil, bufio.ErrTooLong
		}
		if len(s.data) > 0 {
			s.data = append(s.data, '\n')
		}
		s.data = append(s.data, value...)
	}
	switch err := s.lines.Err(); {
	case err != nil:
		return nil, err
	case len(s.data) == 0:
		return nil, io.EOF
	}
	s.cut = true
	return s.data, nil
}

// Decode reads what Next has returned into v. Of what is not of the type that v has for it, such as a text of several
// parts, it takes nothing. An event of which the end of the stream left no more than a part is io.EOF.
func (s *Stream) Decode(v any) error {
	err := json.Unmarshal(s.data, v)
	var other *json.UnmarshalTypeError
	switch {
	case errors.As(err, &other):
		return nil
	case err != nil && s.cut:
		return io.EOF
	}
	return err
}
