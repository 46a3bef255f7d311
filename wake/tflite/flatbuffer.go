package tflite

import (
	"encoding/binary"
	"fmt"
	"math"
)

// A reader is a place in a flatbuffer with the first error met on the way there. After an error every read gives zero
// or nothing, so that code which follows the schema needs to look at the error only once, at the end.
//
// A flatbuffer is a tree of tables. A table begins with the signed distance back to its vtable; the vtable has, for
// each field, its offset from the table's start, or 0 if the field isn't there.
type reader struct {
	buf   []byte
	err   error
	spent int // bytes of the lists read so far
}

// fail remembers the first error.
func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// bytes is the n bytes at pos, nil if they are not all there.
func (r *reader) bytes(pos, n int) []byte {
	if r.err != nil {
		return nil
	}
	if pos < 0 || n < 0 || pos > len(r.buf) || n > len(r.buf)-pos {
		r.fail("truncated at byte %d: %d bytes at %d are wanted", len(r.buf), n, pos)
		return nil
	}
	return r.buf[pos : pos+n]
}

func (r *reader) u16(pos int) int {
	if b := r.bytes(pos, 2); b != nil {
		return int(binary.LittleEndian.Uint16(b))
	}
	return 0
}

func (r *reader) i32(pos int) int {
	if b := r.bytes(pos, 4); b != nil {
		return int(int32(binary.LittleEndian.Uint32(b)))
	}
	return 0
}

// offset follows the unsigned offset at pos.
func (r *reader) offset(pos int) int {
	b := r.bytes(pos, 4)
	if b == nil {
		return 0
	}
	n := binary.LittleEndian.Uint32(b)
	if n > uint32(len(r.buf)) {
		r.fail("truncated at byte %d: an offset at %d leads to %d", len(r.buf), pos, uint64(pos)+uint64(n))
		return 0
	}
	return pos + int(n)
}

// A table is one table of the flatbuffer. The zero table has no fields.
type table struct {
	r      *reader
	pos    int
	vtable int
	fields int // how many the vtable has
}

func (r *reader) table(pos int) table {
	vtable := pos - r.i32(pos)
	size := r.u16(vtable)
	if r.err == nil && size < 4 {
		r.fail("damaged: the table at %d has a field list of %d bytes", pos, size)
	}
	if r.err != nil {
		return table{r: r}
	}
	return table{r, pos, vtable, size/2 - 2}
}

// fork is the same table with a reader of its own.
func (t table) fork() table {
	if t.r != nil {
		t.r = &reader{buf: t.r.buf}
	}
	return t
}

// field is where field n is, 0 if it isn't there.
func (t table) field(n int) int {
	if n >= t.fields {
		return 0
	}
	if off := t.r.u16(t.vtable + 4 + 2*n); off != 0 {
		return t.pos + off
	}
	return 0
}

func (t table) int32(n, absent int) int {
	if p := t.field(n); p != 0 {
		return t.r.i32(p)
	}
	return absent
}

func (t table) uint8(n int) int {
	p := t.field(n)
	if p == 0 {
		return 0
	}
	if b := t.r.bytes(p, 1); b != nil {
		return int(b[0])
	}
	return 0
}

func (t table) float32(n int) float32 {
	if p := t.field(n); p != 0 {
		return math.Float32frombits(uint32(t.r.i32(p)))
	}
	return 0
}

func (t table) bool(n int) bool { return t.uint8(n) != 0 }

// table is the table that field n holds; ok tells whether there is one.
func (t table) table(n int) (sub table, ok bool) {
	p := t.field(n)
	if p == 0 {
		return table{r: t.r}, false
	}
	sub = t.r.table(t.r.offset(p))
	return sub, t.r.err == nil
}

// vector is the place of the first element and the number of elements of the vector in field n. What follows from it
// may allocate by that number: it is never more than fits into the buffer, and all lists together are not much more
// either, so that a file whose lists share one place can't be blown up.
func (t table) vector(n, elementSize int) (pos, count int) {
	p := t.field(n)
	if p == 0 {
		return 0, 0
	}
	p = t.r.offset(p)
	count = t.r.i32(p)
	if t.r.err == nil && (count < 0 || count > (len(t.r.buf)-p-4)/elementSize) {
		t.r.fail("truncated at byte %d: a list of %d × %d bytes begins at %d", len(t.r.buf), count, elementSize, p)
	}
	if t.r.spent += count * elementSize; t.r.err == nil && t.r.spent > 4*len(t.r.buf) {
		t.r.fail("damaged: its lists overlap")
	}
	if t.r.err != nil {
		return 0, 0
	}
	return p + 4, count
}

func (t table) data(n int) []byte {
	pos, count := t.vector(n, 1)
	t.r.spent -= count // it isn't copied
	return t.r.bytes(pos, count)
}

func (t table) int32s(n int) []int {
	pos, count := t.vector(n, 4)
	if count == 0 {
		return nil
	}
	v := make([]int, count)
	for i := range v {
		v[i] = t.r.i32(pos + 4*i)
	}
	return v
}

func (t table) int64s(n int) []int64 {
	pos, count := t.vector(n, 8)
	if count == 0 {
		return nil
	}
	v := make([]int64, count)
	for i := range v {
		if b := t.r.bytes(pos+8*i, 8); b != nil {
			v[i] = int64(binary.LittleEndian.Uint64(b))
		}
	}
	return v
}

func (t table) float32s(n int) []float32 {
	pos, count := t.vector(n, 4)
	if count == 0 {
		return nil
	}
	v := make([]float32, count)
	for i := range v {
		v[i] = math.Float32frombits(uint32(t.r.i32(pos + 4*i)))
	}
	return v
}

// float32At is element i of the bytes of a list of float32.
func float32At(b []byte, i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
}

// each calls f with every table of the vector of tables in field n, until there is an error.
func (t table) each(n int, f func(i int, sub table)) {
	pos, count := t.vector(n, 4)
	for i := range count {
		sub := t.r.table(t.r.offset(pos + 4*i))
		if t.r.err != nil {
			return
		}
		f(i, sub)
	}
}
