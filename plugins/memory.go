package plugins

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"
)

// A MemoryState is a State that is forgotten: that of a trial, or of a loader that only looks what there is. The zero
// value is empty.
type MemoryState struct {
	mu     sync.Mutex
	values map[string]any
}

var _ State = (*MemoryState)(nil)

// Get is described by State, as are the others.
func (s *MemoryState) Get(key string, def any) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.values[key]; ok {
		return v
	}
	return def
}

func (s *MemoryState) All() map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values == nil {
		return map[string]any{}
	}
	return maps.Clone(s.values)
}

func (s *MemoryState) Save(key string, value any) error {
	_, err := s.Update(key, nil, func(any) (any, error) { return value, nil })
	return err
}

func (s *MemoryState) Delete(key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.values, key)
	return nil
}

func (s *MemoryState) Clear() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.values)
	return nil
}

func (s *MemoryState) Update(key string, def any, f func(any) (any, error)) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, ok := s.values[key]
	if !ok {
		old = def
	}
	value, err := f(old)
	if err != nil {
		return nil, err
	}
	// What is kept is what JSON makes of it, as in the real one.
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		return nil, err
	}
	if s.values == nil {
		s.values = make(map[string]any)
	}
	s.values[key] = plain
	return value, nil
}

// MemoryRows are Rows that are forgotten: those of a trial. The zero value has no chats.
type MemoryRows struct {
	mu    sync.Mutex
	chats map[string]map[string]map[uint64]memoryRow // by chat, key and number
}

type memoryRow struct {
	value json.RawMessage
	at    time.Time
}

var _ Rows = (*MemoryRows)(nil)

// AddChat makes a chat, if it isn't there.
func (r *MemoryRows) AddChat(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.chats == nil {
		r.chats = make(map[string]map[string]map[uint64]memoryRow)
	}
	if r.chats[name] == nil {
		r.chats[name] = make(map[string]map[uint64]memoryRow)
	}
}

// Get is described by Rows, as are the others.
func (r *MemoryRows) Get(chat, key string) (json.RawMessage, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slot0(r.chats[chat][key])
}

func slot0(rows map[uint64]memoryRow) (json.RawMessage, bool) {
	row, ok := rows[0]
	if !ok || string(row.value) == "null" {
		return nil, false
	}
	return bytes.Clone(row.value), true
}

// write sets the values from a number on.
func (r *MemoryRows) write(chat, key string, first uint64, values []json.RawMessage) error {
	keys := r.chats[chat]
	if keys == nil {
		return ErrNoChat
	}
	if keys[key] == nil && len(values) > 0 {
		keys[key] = make(map[uint64]memoryRow)
	}
	for i, v := range values {
		keys[key][first+uint64(i)] = memoryRow{bytes.Clone(v), time.Now()}
	}
	return nil
}

func (r *MemoryRows) Put(chat, key string, v json.RawMessage) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.write(chat, key, 0, []json.RawMessage{v})
}

func (r *MemoryRows) Append(chat, key string, v json.RawMessage) (uint64, error) {
	seqs, err := r.AppendMany(chat, key, []json.RawMessage{v})
	if err != nil {
		return 0, err
	}
	return seqs[0], nil
}

func (r *MemoryRows) AppendMany(chat, key string, values []json.RawMessage) ([]uint64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := uint64(1)
	for seq := range r.chats[chat][key] {
		first = max(first, seq+1)
	}
	if err := r.write(chat, key, first, values); err != nil {
		return nil, err
	}
	var seqs []uint64
	for i := range values {
		seqs = append(seqs, first+uint64(i))
	}
	return seqs, nil
}

func (r *MemoryRows) ReadAll(chat, key string) (values []json.RawMessage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rows := r.chats[chat][key]
	for _, seq := range slices.Sorted(maps.Keys(rows)) {
		values = append(values, bytes.Clone(rows[seq].value))
	}
	return values
}

func (r *MemoryRows) Replace(chat, key string, values []json.RawMessage) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.chats[chat], key)
	return r.write(chat, key, 1, values)
}

func (r *MemoryRows) Delete(chat, key string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.chats[chat], key)
	return nil
}

func (r *MemoryRows) DeleteAll(chat string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.chats[chat])
	return nil
}

func (r *MemoryRows) Keys(chat string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.chats[chat]))
}

func (r *MemoryRows) AllChats(key string) map[string]json.RawMessage {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make(map[string]json.RawMessage)
	for chat, keys := range r.chats {
		if v, ok := slot0(keys[key]); ok {
			all[chat] = v
		}
	}
	return all
}

func (r *MemoryRows) Meta(chat, key string) (m RowsMeta, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, row := range r.chats[chat][key] {
		m.Rows++
		if row.at.After(m.Updated) {
			m.Updated = row.at
		}
	}
	return m, m.Rows > 0
}
