package worker

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"sync"
	"time"

	"bellbird/hooks"
	"bellbird/plugins"
)

// The protocol, over a pair of pipes. A frame is a 32-bit number, big endian, the length of what follows: a message as
// codec.go writes it.
//
// The host sends load, check, call, tools, execute and cancel, each with a number of its own; the worker answers all but
// the last with the same number. It also sends settings. While it has not, it may ask for something in turn, in messages
// numbered by itself, which the host answers: for the plugin's state, and, naming the call in which it asks, for the
// plugin's rows, for a power or for a request to a server. It may also have something published.
//
// plugins/python speaks it too, from a program in Python. A worker that sends what is not in it is ended.

// A message is everything that is ever sent. Which fields it has depends on Op.
type message struct {
	Op op
	ID uint64

	// load: the unit gets the number of the load, and its settings, which
	// are sent again before a call if they have changed.
	Plugin   string
	Settings map[string]any
	File     string
	Source   string

	// call, and its answer; whoever asks belongs to a unit too. A tool to execute is Key, with its arguments in Kwargs; its
	// answer is in Value and Found, and the schemas of the tools are in Args.
	Unit   uint64
	Point  string
	Event  *hooks.Event
	System bool // there are powers to be asked for

	// ask, and its answer
	Do       string
	Key      string // of the state, or the name of the power, of the call for rows, or of the tool
	Value    any
	Found    bool
	Call     uint64 // the load or call in which it is asked
	Args     []any
	Kwargs   map[string]any
	Names    []string
	Request  *plugins.Request
	Response *plugins.Response

	Error string
}

// An op is what a message is.
type op byte

// The operations.
const (
	opLoad     op = 1 + iota
	opCheck       // whether a unit has a function for a point
	opCall        //
	opTools       // which a unit has
	opExecute     // one of them
	opSettings    // of a unit; it has no answer
	opCancel      //
	opDone        // the answer to one of these
	opAsk         // from the worker
	opReply       // the answer to that
)

// What can be asked for.
const (
	doGet    = "get" // of the state, as are the next four
	doAll    = "all"
	doSave   = "save"
	doDelete = "delete"
	doClear  = "clear"
	doRows   = "rows"  // what plugins.CallRows does
	doNames  = "names" // of the powers
	doPower  = "power"
	doFetch  = "fetch"

	doPublish = "publish"
)

const (
	maxMessage = 16 << 20
	maxAsk     = 4 << 20  // of the values in what is asked for
	keptBuffer = 64 << 10 // larger ones are not kept for the next message
)

// systemKey is where an event's metadata have the powers, which are no value and are not sent.
const systemKey = "system"

// A conn sends and receives messages. Sending may be done by several goroutines, receiving by one.
type conn struct {
	r  *bufio.Reader
	in []byte

	mu     sync.Mutex
	w      io.Writer
	out    []byte
	limit  func(time.Time) error // the writer's SetWriteDeadline; nil: it may take its time
	broken func()                // called when a message could not be written as a whole; nil: nobody is
}

func newConn(r io.Reader, w io.Writer) *conn { return &conn{r: bufio.NewReaderSize(r, 1<<16), w: w} }

// sendWait is how long the other side may take to make room for a message.
const sendWait = 2 * time.Second

// send sends a message, or nothing of it if it is too large. After another error nothing more can be sent.
func (c *conn) send(m message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := encoder{b: append(c.out[:0], 0, 0, 0, 0)}
	e.message(&m)
	if cap(e.b) <= keptBuffer {
		c.out = e.b
	}
	if e.err != nil {
		return e.err
	}
	if len(e.b) > maxMessage {
		return fmt.Errorf("a message of %d bytes is too large", len(e.b))
	}
	binary.BigEndian.PutUint32(e.b, uint32(len(e.b)-4))
	if c.limit != nil {
		if err := c.limit(time.Now().Add(sendWait)); err != nil {
			return err
		}
	}
	_, err := c.w.Write(e.b)
	if err != nil && c.broken != nil {
		c.broken()
	}
	return err
}

func (c *conn) receive() (m message, err error) {
	head, err := c.r.Peek(4)
	if err != nil {
		return m, err
	}
	n := int(binary.BigEndian.Uint32(head))
	if n > maxMessage {
		return m, fmt.Errorf("a message of %d bytes is too large", n)
	}
	_, _ = c.r.Discard(4) // they are in the buffer
	in := c.in
	if cap(in) < n {
		in = make([]byte, n)
	}
	in = in[:n]
	if cap(in) <= keptBuffer {
		c.in = in
	}
	if _, err := io.ReadFull(c.r, in); err != nil {
		return m, err
	}
	d := decoder{b: in}
	d.message(&m)
	return m, d.err
}
