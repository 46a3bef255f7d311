package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// maxEvent bounds a line of a stream, and an event: a server may send a whole answer, thoughts and all, in one.
const maxEvent = 1 << 20

// A stream reads server-sent events, of which the chat completions use but the data. Its lines end in LF or CRLF.
type stream struct {
	lines *bufio.Scanner
	data  []byte
	cut   bool // no empty line ended the event; it may be incomplete
}

func newStream(r io.Reader) *stream {
	s := &stream{lines: bufio.NewScanner(r)}
	s.lines.Buffer(nil, maxEvent)
	return s
}

// next returns the data of the next event that has some, its lines joined by LF. They are valid until it is called again.
// The error is io.EOF at the end, bufio.ErrTooLong after a line or an event that is too long, or the reader's own.
func (s *stream) next() ([]byte, error) {
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

// A chunk is the data of an event.
type chunk struct {
	Choices []struct {
		Delta struct {
			Content   string     `json:"content"`
			Refusal   string     `json:"refusal"`
			ToolCalls []toolCall `json:"tool_calls"`
		} `json:"delta"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage *usage `json:"usage"`
	Error any    `json:"error"` // not nil: it is one
}

// A toolCall is a piece of a call.
type toolCall struct {
	Index    int    `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string    `json:"name"`
		Arguments arguments `json:"arguments"`
	} `json:"function"`
}

type usage struct {
	PromptTokens        int `json:"prompt_tokens"`
	CompletionTokens    int `json:"completion_tokens"`
	PromptTokensDetails struct {
		CachedTokens     int `json:"cached_tokens"`
		CacheWriteTokens int `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
}

// arguments are JSON within a string, of which a piece need not be valid. Some servers have an object there.
type arguments string

func (a *arguments) UnmarshalJSON(text []byte) error {
	switch {
	case bytes.HasPrefix(text, []byte(`"`)):
		return json.Unmarshal(text, (*string)(a))
	case string(text) != "null":
		*a = arguments(text)
	}
	return nil
}

// parse reads a chunk. Of what is not of the type that the API gives it, such as a content of several parts, it takes
// nothing.
func parse(data []byte) (chunk, error) {
	var c chunk
	var other *json.UnmarshalTypeError
	err := json.Unmarshal(data, &c)
	if errors.As(err, &other) {
		err = nil
	}
	return c, err
}
