package tflite_test

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"bellbird/wake/tflite"
)

// Models made by hand, of a few hundred bytes each, with most of the operators: what FuzzLoad begins with. Real models
// are too large for it to get anywhere.

// A file is a flatbuffer being written.
type file []byte

func (f *file) u32(v uint32) { *f = binary.LittleEndian.AppendUint32(*f, v) }

func (f *file) point(from int) { binary.LittleEndian.PutUint32((*f)[from:], uint32(len(*f)-from)) }

func (f *file) align() {
	for len(*f)%4 != 0 {
		*f = append(*f, 0)
	}
}

// A fields is a table: each value is what its type says, a list, a table, or nil if absent.
type fields []any

// table writes a table at the end, and what it points to behind it.
func (f *file) table(t fields) {
	vtable := len(*f)
	*f = binary.LittleEndian.AppendUint16(*f, uint16(4+2*len(t)))
	*f = binary.LittleEndian.AppendUint16(*f, uint16(4+4*len(t)))
	for i, v := range t {
		at := uint16(0)
		if v != nil {
			at = uint16(4 + 4*i)
		}
		*f = binary.LittleEndian.AppendUint16(*f, at)
	}
	f.align()
	start := len(*f)
	f.u32(uint32(start - vtable))
	for _, v := range t {
		switch v := v.(type) {
		case int:
			f.u32(uint32(v))
		case float32:
			f.u32(math.Float32bits(v))
		default:
			f.u32(0)
		}
	}
	for i, v := range t {
		at := start + 4 + 4*i
		switch v := v.(type) {
		case fields:
			// The offset leads to the table, which stands behind its list of fields.
			sub := len(*f)
			f.table(v)
			size := (4 + 2*len(v) + 3) &^ 3
			binary.LittleEndian.PutUint32((*f)[at:], uint32(sub+size-at))
		case []fields:
			f.point(at)
			f.u32(uint32(len(v)))
			list := len(*f)
			*f = append(*f, make([]byte, 4*len(v))...)
			for k, t := range v {
				sub := len(*f)
				f.table(t)
				binary.LittleEndian.PutUint32((*f)[list+4*k:], uint32(sub+(4+2*len(t)+3)&^3-list-4*k))
			}
		case []byte:
			f.point(at)
			f.u32(uint32(len(v)))
			*f = append(*f, v...)
			f.align()
		case []int:
			f.point(at)
			f.u32(uint32(len(v)))
			for _, x := range v {
				f.u32(uint32(x))
			}
		case []float32:
			f.point(at)
			f.u32(uint32(len(v)))
			for _, x := range v {
				f.u32(math.Float32bits(x))
			}
		case []int64:
			f.point(at)
			f.u32(uint32(len(v)))
			for _, x := range v {
				*f = binary.LittleEndian.AppendUint64(*f, uint64(x))
			}
		}
	}
}

// A maker collects what a model is made of.
type maker struct {
	codes   []int
	buffers []fields
	graphs  []fields
	tensors []fields
	ops     []fields
}

func (m *maker) tensor(typ tflite.Type, shape []int, data []byte) int {
	b := 0
	if m.buffers == nil {
		m.buffers = []fields{{}}
	}
	if data != nil {
		b = len(m.buffers)
		m.buffers = append(m.buffers, fields{data})
	}
	t := fields{shape, int(typ), b, nil, nil}
	if typ == tflite.Int8 {
		t[4] = fields{nil, nil, []float32{0.5}, []int64{0}}
	} else if typ == tflite.UInt8 {
		t[4] = fields{nil, nil, []float32{1. / 16}, []int64{0}}
	}
	m.tensors = append(m.tensors, t)
	return len(m.tensors) - 1
}

// ints and floats are constants.
func (m *maker) ints(v ...int) int {
	var b file
	for _, x := range v {
		b.u32(uint32(x))
	}
	return m.tensor(tflite.Int32, []int{len(v)}, b)
}

func (m *maker) floats(shape ...int) int {
	var b file
	n := 1
	for _, d := range shape {
		n *= d
	}
	for i := range n {
		b.u32(math.Float32bits(float32(i%7) / 4))
	}
	return m.tensor(tflite.Float32, shape, b)
}

func (m *maker) bytes(shape ...int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*37 + 1)
	}
	return m.tensor(tflite.Int8, shape, b)
}

// op adds an operator and its result.
func (m *maker) op(code int, typ tflite.Type, shape []int, options fields, inputs ...int) int {
	out := []int{}
	if typ >= 0 {
		out = append(out, m.tensor(typ, shape, nil))
	}
	i := slices.Index(m.codes, code)
	if i < 0 {
		i = len(m.codes)
		m.codes = append(m.codes, code)
	}
	o := fields{i, inputs, out, nil, nil}
	if options != nil {
		o[4] = options
	}
	m.ops = append(m.ops, o)
	return len(m.tensors) - 1
}

func (m *maker) graph(inputs, outputs []int) {
	m.graphs = append(m.graphs, fields{m.tensors, inputs, outputs, m.ops})
	m.tensors, m.ops = nil, nil
}

func (m *maker) file() []byte {
	var codes []fields
	for _, c := range m.codes {
		codes = append(codes, fields{min(c, 127), nil, nil, c})
	}
	f := file("\x00\x00\x00\x00TFL3")
	root := fields{3, codes, m.graphs, nil, m.buffers}
	f.table(root)
	binary.LittleEndian.PutUint32(f, uint32(8+(4+2*len(root)+3)&^3))
	return f
}

// int8Seed is a streaming model: a row of eight comes in, the last three are looked at.
func int8Seed() []byte {
	m := new(maker)
	name := fields{[]byte("c"), []byte("v")}
	in := m.tensor(tflite.Int8, []int{1, 1, 8}, nil)
	m.op(129, -1, nil, fields{1})
	handle := m.op(142, tflite.Resource, []int{}, name)
	row := m.op(22, tflite.Int8, []int{1, 1, 1, 8}, nil, in)
	old := m.op(143, tflite.Int8, []int{1, 2, 1, 8}, nil, handle)
	all := m.op(2, tflite.Int8, []int{1, 3, 1, 8}, fields{1}, old, row)
	kept := m.op(45, tflite.Int8, []int{1, 2, 1, 8}, fields{13, 13}, all, m.ints(0, 1, 0, 0), m.ints(0, 3, 0, 0), m.ints(1, 1, 1, 1))
	m.op(144, -1, nil, nil, handle, kept)
	deep := m.op(4, tflite.Int8, []int{1, 1, 1, 8}, fields{1, 1, 1, 1, 1, 1, 1}, all, m.bytes(1, 3, 1, 8), m.ints(1, 2, 3, 4, 5, 6, 7, 8))
	mixed := m.op(3, tflite.Int8, []int{1, 1, 1, 9}, fields{1, 1, 1, 0, 1, 1}, deep, m.bytes(9, 1, 1, 8), m.ints(1, 2, 3, 4, 5, 6, 7, 8, 9))
	sum := m.op(9, tflite.Int8, []int{1, 1}, fields{0}, mixed, m.bytes(1, 9), m.ints(5))
	p := m.op(14, tflite.Int8, []int{1, 1}, nil, sum)
	out := m.op(114, tflite.UInt8, []int{1, 1}, nil, p)
	m.graph([]int{in}, []int{out})

	handle = m.op(142, tflite.Resource, []int{}, name)
	m.op(144, -1, nil, nil, handle, m.bytes(1, 2, 1, 8))
	m.graph([]int{}, []int{})
	return m.file()
}

// floatSeed has a convolution over time and, if tail, a head that chooses.
func floatSeed(tail bool) []byte {
	m := new(maker)
	f := tflite.Float32
	in := m.tensor(f, []int{1, 4, 4, 1}, nil)
	x := m.op(34, f, []int{1, 4, 6, 1}, nil, in, m.ints(0, 0, 0, 0, 1, 1, 0, 0))
	m.tensors[m.ops[0][1].([]int)[1]][0] = []int{4, 2}
	x = m.op(3, f, []int{1, 2, 4, 3}, fields{1, 1, 1, 0, 1, 1}, x, m.floats(3, 3, 3, 1), m.floats(3))
	x = m.op(98, f, []int{1, 2, 4, 3}, fields{float32(0.2)}, x)
	x = m.op(55, f, []int{1, 2, 4, 3}, nil, x, m.floats(1))
	x = m.op(17, f, []int{1, 1, 2, 3}, fields{1, 2, 2, 2, 2, 0}, x)
	if tail {
		x = m.op(22, f, []int{1, 6}, nil, x, m.ints(-1, 6))
		x = m.op(9, f, []int{1, 4}, fields{1}, x, m.floats(4, 6), m.floats(4))
		mean := m.op(40, f, []int{1, 1}, fields{1}, x, m.ints(1))
		x = m.op(41, f, []int{1, 4}, nil, x, mean)
		x = m.op(18, f, []int{1, 4}, nil, x, m.floats(4))
		x = m.op(126, f, []int{1, 2}, nil, x, m.floats(4, 2))
		x = m.op(39, f, []int{2, 1}, nil, x, m.ints(1, 0))
		x = m.op(82, f, []int{1}, nil, x, m.ints(0, 1))
		m.tensors[x][0] = []int{}
		x = m.op(70, f, []int{1}, nil, x, m.ints(0))
		x = m.op(14, f, []int{1}, nil, x)
		more := m.op(62, tflite.Bool, []int{1}, nil, x, m.floats(1))
		x = m.op(118, f, []int{1}, fields{1, 2}, more, x)
	}
	m.graph([]int{in}, []int{x})
	for range 2 {
		in := m.tensor(f, []int{1}, nil)
		m.graph([]int{in}, []int{m.op(73+3*(len(m.graphs)-1), f, []int{1}, nil, in)})
	}
	return m.file()
}

func TestSeedsAreModels(t *testing.T) {
	m, err := tflite.Parse(int8Seed())
	if err != nil {
		t.Fatal(err)
	}
	in, err := m.NewInterpreter()
	if err != nil {
		t.Fatal(err)
	}
	if out := steps(in, 20); slices.Equal(out, make([]uint8, 20)) {
		t.Error("all outputs are 0")
	}
	for _, tail := range []bool{false, true} {
		m, err := tflite.Parse(floatSeed(tail))
		if err != nil {
			t.Fatal(err)
		}
		in, err := m.NewFloat(tflite.FloatOptions{})
		if err != nil {
			t.Fatal(err)
		}
		in.Invoke()
		_, err = m.NewFloat(tflite.FloatOptions{Fresh: 2})
		if (err != nil) != tail {
			t.Errorf("row by row: error %v", err)
		}
	}
}

// Row by row gives what the whole window gives.
func TestFreshRowsAreTheWindow(t *testing.T) {
	m, err := tflite.Parse(floatSeed(false))
	if err != nil {
		t.Fatal(err)
	}
	whole, err := m.NewFloat(tflite.FloatOptions{})
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := m.NewFloat(tflite.FloatOptions{Fresh: 2})
	if err != nil {
		t.Fatal(err)
	}
	var past []float32
	for step := range 20 {
		for i := range fresh.Input() {
			fresh.Input()[i] = float32(math.Sin(float64(step*step + 3*i)))
		}
		past = append(past, fresh.Input()...)
		fresh.Invoke()
		if step == 0 {
			continue
		}
		copy(whole.Input(), past[len(past)-16:])
		whole.Invoke()
		if !slices.Equal(fresh.Output(), whole.Output()) {
			t.Fatalf("step %d: %v, not %v", step, fresh.Output(), whole.Output())
		}
	}
	if n := testing.AllocsPerRun(20, fresh.Invoke); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if _, err := m.NewFloat(tflite.FloatOptions{Fresh: 1}); err == nil {
		t.Error("one row can't be pooled two by two")
	}
	if _, err := m.NewInterpreter(); err == nil {
		t.Error("a float model was run as int8")
	}
}

// FuzzLoad breaks models in every way: none may panic, hang or use up the memory.
func FuzzLoad(f *testing.F) {
	f.Add([]byte("\x1c\x00\x00\x00TFL3"))
	f.Add(int8Seed())
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := tflite.Parse(data)
		if err != nil {
			return
		}
		in, err := m.NewInterpreter()
		if err != nil {
			return
		}
		in.Invoke()
		in.Reset()
	})
}

// FuzzFloat is FuzzLoad for float32.
func FuzzFloat(f *testing.F) {
	f.Add(floatSeed(false))
	f.Add(floatSeed(true))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := tflite.Parse(data)
		if err != nil {
			return
		}
		for _, o := range []tflite.FloatOptions{{}, {Fresh: 2}, {Input: []int{1, 9, 5, 1}}} {
			if in, err := m.NewFloat(o); err == nil {
				in.Invoke()
				in.Reset()
			}
		}
	})
}
