package worker

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"bellbird/hooks"
)

// The protocol, over a pair of pipes. A frame is two 32-bit numbers, big endian, the lengths of what follows: a message
// in JSON, and the bytes that it refers to. Where a value in an event is bytes, the JSON has {"$bytes": n} for the n-th
// of the message's blobs, whose lengths it lists.
//
// The host sends load, call and cancel, each with a number of its own; the worker answers load and call with the same
// number. The worker in turn sends state requests, numbered by itself, and the host answers them.

// A message is everything that is ever sent. Which fields it has depends on Op.
type message struct {
	Op string `json:"op"`
	ID uint64 `json:"id"`

	// load: the unit gets the number of the load.
	Plugin string `json:"plugin,omitempty"`
	File   string `json:"file,omitempty"`
	Source string `json:"source,omitempty"`

	// call, and its answer; a state request belongs to a unit too
	Unit  uint64       `json:"unit,omitempty"`
	Point string       `json:"point,omitempty"`
	Event *hooks.Event `json:"event,omitempty"`

	// state, and its answer
	Do    string `json:"do,omitempty"` // get, all, save, delete
	Key   string `json:"key,omitempty"`
	Value any    `json:"value,omitempty"`
	Found bool   `json:"found,omitempty"`

	Error string `json:"error,omitempty"`
	Blobs []int  `json:"blobs,omitempty"`
}

// The operations.
const (
	opLoad   = "load"
	opCheck  = "check" // whether a unit has a function for a point
	opCall   = "call"
	opCancel = "cancel"
	opDone   = "done"  // the answer to load, check or call
	opState  = "state" // from the worker
	opReply  = "reply" // the answer to that
)

const (
	maxMessage = 16 << 20
	maxBlobs   = 64 << 20
)

// A conn sends and receives messages. Sending may be done by several goroutines, receiving by one.
type conn struct {
	r *bufio.Reader

	mu sync.Mutex
	w  io.Writer
}

func newConn(r io.Reader, w io.Writer) *conn { return &conn{r: bufio.NewReaderSize(r, 1<<16), w: w} }

func (c *conn) send(m message) error {
	var blobs [][]byte
	if m.Event != nil {
		e := *m.Event
		e.Metadata, _ = pack(e.Metadata, &blobs).(map[string]any)
		m.Event = &e
	}
	total := 0
	for _, b := range blobs {
		m.Blobs = append(m.Blobs, len(b))
		total += len(b)
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(text) > maxMessage || total > maxBlobs {
		return fmt.Errorf("a message of %d and %d bytes is too large", len(text), total)
	}
	frame := make([]byte, 8, 8+len(text)+total)
	binary.BigEndian.PutUint32(frame, uint32(len(text)))
	binary.BigEndian.PutUint32(frame[4:], uint32(total))
	frame = append(frame, text...)
	for _, b := range blobs {
		frame = append(frame, b...)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err = c.w.Write(frame)
	return err
}

func (c *conn) receive() (m message, err error) {
	var head [8]byte
	if _, err := io.ReadFull(c.r, head[:]); err != nil {
		return m, err
	}
	n, total := binary.BigEndian.Uint32(head[:]), binary.BigEndian.Uint32(head[4:])
	if n > maxMessage || total > maxBlobs {
		return m, fmt.Errorf("a message of %d and %d bytes is too large", n, total)
	}
	text, data := make([]byte, n), make([]byte, total)
	if _, err := io.ReadFull(c.r, text); err != nil {
		return m, err
	}
	if _, err := io.ReadFull(c.r, data); err != nil {
		return m, err
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, err
	}
	var blobs [][]byte
	for _, n := range m.Blobs {
		if n < 0 || n > len(data) {
			return m, errors.New("the blobs of a message don't add up")
		}
		blobs = append(blobs, data[:n:n])
		data = data[n:]
	}
	if m.Event != nil {
		metadata, err := unpack(m.Event.Metadata, blobs)
		if err != nil {
			return m, err
		}
		m.Event.Metadata, _ = metadata.(map[string]any)
	}
	return m, nil
}

const bytesKey = "$bytes"

// pack takes the bytes out of a value.
func pack(v any, blobs *[][]byte) any {
	switch v := v.(type) {
	case []byte:
		*blobs = append(*blobs, v)
		return map[string]any{bytesKey: len(*blobs) - 1}
	case []any:
		c := make([]any, len(v))
		for i, x := range v {
			c[i] = pack(x, blobs)
		}
		return c
	case map[string]any:
		if v == nil {
			return v
		}
		c := make(map[string]any, len(v))
		for k, x := range v {
			if k != "system" { // a power is not a value
				c[k] = pack(x, blobs)
			}
		}
		return c
	}
	return v
}

// unpack puts the bytes back.
func unpack(v any, blobs [][]byte) (any, error) {
	var err error
	switch v := v.(type) {
	case []any:
		for i := range v {
			if v[i], err = unpack(v[i], blobs); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		if n, ok := v[bytesKey].(float64); ok && len(v) == 1 {
			if i := int(n); i >= 0 && i < len(blobs) {
				return blobs[i], nil
			}
			return nil, fmt.Errorf("there is no blob %v", n)
		}
		for k := range v {
			if v[k], err = unpack(v[k], blobs); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}
