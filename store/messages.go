package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"bellbird/dialog"

	"go.etcd.io/bbolt"
)

// A Message is a message as it is kept.
type Message struct {
	dialog.Message
	Seq   uint64 // grows from message to message, in all chats together
	Ended string // how the turn ended that this is the last message of; empty: it is not the last, or not known
}

// maxMessage bounds a message, as JSON.
const maxMessage = 1 << 20

// appendFill is how full pages get that are only ever appended to.
const appendFill = 0.9

// stored is a message in the file and in an export.
type stored struct {
	Role    dialog.Role  `json:"role"`
	Content string       `json:"content"`
	Time    time.Time    `json:"time,omitzero"`
	Calls   []storedCall `json:"calls,omitempty"`
	CallID  string       `json:"call_id,omitempty"`
	Name    string       `json:"name,omitempty"`
	Ended   string       `json:"ended,omitempty"`
}

type storedCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Invalid   string          `json:"invalid,omitempty"`
}

func toStored(m Message) stored {
	s := stored{Role: m.Role, Content: m.Content, Time: m.Time, CallID: m.CallID, Name: m.Name, Ended: m.Ended}
	for _, c := range m.Calls {
		s.Calls = append(s.Calls, storedCall(c))
	}
	return s
}

func (s stored) message(seq uint64) Message {
	m := Message{Seq: seq, Ended: s.Ended}
	m.Role, m.Content, m.Time, m.CallID, m.Name = s.Role, s.Content, s.Time, s.CallID, s.Name
	for _, c := range s.Calls {
		m.Calls = append(m.Calls, dialog.ToolCall(c))
	}
	return m
}

// message decodes a message of the chat.
func (r *record) message(k, v []byte) (Message, error) {
	var s stored
	if len(k) != 8 {
		return Message{}, errUnreadable
	}
	err := r.decodeJSON(r.at("messages").seq(num64(k)), v, &s)
	return s.message(num64(k)), err
}

// A Chat is a handle for a chat. A rename doesn't hurt it; when the chat is deleted there is nothing in it and writes are
// errors, and so it is while the vault is locked that it is in.
type Chat struct {
	s    *Store
	id   uint64
	last uint64 // the last message that was appended by this handle; guarded by the store's lock
}

// Chat returns a handle for the chat of that name.
func (s *Store) Chat(name string) (*Chat, error) {
	e, err := s.find(name)
	if err != nil {
		return nil, err
	}
	return &Chat{s: s, id: e.id}, nil
}

// Active returns a handle for the active chat, or ErrLocked: a private chat stays active when the vault is locked, so that
// nothing is said in another one by mistake.
func (s *Store) Active() (*Chat, error) {
	x := s.index.Load()
	if x.byID[x.active] == nil {
		return nil, ErrLocked
	}
	return &Chat{s: s, id: x.active}, nil
}

// Name is the chat's name as it is now; empty if it is not there.
func (c *Chat) Name() string {
	if e := c.s.index.Load().byID[c.id]; e != nil {
		return e.name
	}
	return ""
}

// Private reports whether the chat is marked as private. One that is not there is.
func (c *Chat) Private() bool {
	e := c.s.index.Load().byID[c.id]
	return e == nil || e.private
}

// Surface is where the chat is shown, see Settings.ShownOn; empty if it is not there.
func (c *Chat) Surface() string {
	if e := c.s.index.Load().byID[c.id]; e != nil {
		return e.surface
	}
	return ""
}

func (c *Chat) read(f func(*record) error) error {
	return c.s.read(func(tx *bbolt.Tx) error {
		r, err := c.s.open(tx, c.id)
		if err != nil {
			return err
		}
		return f(r)
	})
}

// Messages are the newest messages, as many as the options allow. What can't be read is left out.
//
// They begin with the same message from call to call, so that a model server remembers what it was told; only when they
// become too many half of them is left out at once.
func (c *Chat) Messages() []dialog.Message {
	n, bytes := c.s.o.HistoryMessages, c.s.o.HistoryBytes
	var list []Message
	err := c.read(func(r *record) error {
		c.s.touch(r.Sealed)
		begin, known := c.s.begins[c.id]
		if list = r.last(n, bytes); known {
			list = r.last(n+1, bytes)
			i := slices.IndexFunc(list, func(m Message) bool { return m.Seq == begin })
			if i < 0 || len(list)-i > n { // too much, or the chat was cleared
				i, list = 0, r.last(max(n/2, 1), bytes/2)
			}
			list = list[i:]
		}
		if len(list) > 0 {
			c.s.begins[c.id] = list[0].Seq
		}
		return nil
	})
	if err != nil {
		c.s.o.Logger.Warn("history", "err", err)
	}
	messages := make([]dialog.Message, len(list))
	for i, m := range list {
		messages[i] = m.Message
	}
	return messages
}

// Last returns the newest n messages that have, together, at most that many bytes of text and arguments of calls. It
// doesn't begin with the result of a call that was cut off.
func (c *Chat) Last(n, bytes int) (list []Message, err error) {
	err = c.read(func(r *record) error {
		c.s.touch(r.Sealed)
		list = r.last(n, bytes)
		return nil
	})
	return list, err
}

func (r *record) last(n, bytes int) (list []Message) {
	cursor := r.messages().Cursor()
	for k, v := cursor.Last(); k != nil && len(list) < n; k, v = cursor.Prev() {
		m, err := r.message(k, v)
		if err != nil {
			continue
		}
		bytes -= len(m.Content)
		for _, call := range m.Calls {
			bytes -= len(call.Arguments)
		}
		if bytes < 0 {
			break
		}
		list = append(list, m)
	}
	slices.Reverse(list)
	for len(list) > 0 && list[0].Role == dialog.Tool {
		list = list[1:]
	}
	return list
}

// All returns all messages.
func (c *Chat) All() ([]Message, error) { return c.Page(0, int(^uint(0)>>1)) }

// Page returns at most n messages after the one with that sequence number, oldest first.
func (c *Chat) Page(after uint64, n int) (list []Message, err error) {
	err = c.read(func(r *record) error {
		cursor := r.messages().Cursor()
		for k, v := cursor.Seek(key64(after + 1)); k != nil && len(list) < n; k, v = cursor.Next() {
			if m, err := r.message(k, v); err == nil {
				list = append(list, m)
			}
		}
		return nil
	})
	return list, err
}

// Append adds messages, all or none. They are durable when it returns.
func (c *Chat) Append(messages ...dialog.Message) error {
	encoded := make([][]byte, len(messages))
	for i, m := range messages {
		if m.PerTurn {
			return errPerTurn
		}
		var err error
		if encoded[i], err = encodeMessage(Message{Message: m}); err != nil {
			return err
		}
	}
	return c.s.write(now, func(t *txn) error {
		if len(encoded) == 0 {
			return errUnchanged
		}
		r, err := c.s.open(t.Tx, c.id)
		if err != nil {
			return err
		}
		if err := c.s.room(t); err != nil {
			return err
		}
		c.s.touch(r.Sealed)
		b := r.messages()
		b.FillPercent = appendFill
		for _, payload := range encoded {
			seq, err := t.Bucket(chatsBucket).NextSequence()
			if err != nil {
				return t.fault(err)
			}
			if err := b.Put(key64(seq), r.encode(r.at("messages").seq(seq), payload)); err != nil {
				return t.fault(err)
			}
			c.last = seq
		}
		return nil
	})
}

// errPerTurn keeps from chats what belongs into a single request.
var errPerTurn = errors.New("a message that is for one turn only can't be kept")

func encodeMessage(m Message) ([]byte, error) {
	payload, err := json.Marshal(toStored(m))
	if err != nil {
		return nil, fmt.Errorf("a message: %w", err)
	}
	if len(payload) > maxMessage {
		return nil, fmt.Errorf("a message: %w, at most %d bytes", ErrTooLarge, maxMessage)
	}
	return payload, nil
}

// Amend replaces the text of the last message that this handle appended, or else of the last one. Nobody waits for it to
// be durable: it is committed with the next batch.
func (c *Chat) Amend(content string) error {
	return c.changeLast(func(m *Message) { m.Content = content })
}

// End notes how the turn ended that the last message belongs to. It is committed with the next batch.
func (c *Chat) End(how string) error {
	return c.changeLast(func(m *Message) { m.Ended = how })
}

func (c *Chat) changeLast(f func(*Message)) error {
	return c.s.write(later, func(t *txn) error {
		r, err := c.s.open(t.Tx, c.id)
		if err != nil {
			return err
		}
		b := r.messages()
		k := key64(c.last)
		v := b.Get(k)
		if v == nil {
			if k, v = b.Cursor().Last(); k == nil {
				return errUnchanged
			}
		}
		m, err := r.message(k, v)
		if err != nil {
			return err
		}
		f(&m)
		payload, err := encodeMessage(m)
		if err != nil {
			return err
		}
		return t.fault(b.Put(key64(m.Seq), r.encode(r.at("messages").seq(m.Seq), payload)))
	})
}

// Private resolves the privacy of a chat for the hooks: of the named one, or of the active one, which it then names. It
// never waits for the disk. A chat that is not there is private, with an error; the name of one in the locked vault is
// not told.
func (s *Store) Private(_ context.Context, name *string) (chat string, private bool, err error) {
	if name != nil {
		e, err := s.find(*name)
		if err != nil {
			return *name, true, err
		}
		return e.name, e.private, nil
	}
	x := s.index.Load()
	e := x.byID[x.active]
	if e == nil {
		return "", true, ErrLocked
	}
	return e.name, e.private, nil
}
