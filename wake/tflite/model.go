// Package tflite runs the small TensorFlow Lite models that wake words are, in Go: streaming int8 models, as
// microWakeWord's are (Interpreter), and float32 ones, as openWakeWord's are (FloatInterpreter). It knows the operators
// that occur in those and refuses others by name. It reads any file without harm: what is damaged, or asks for more
// memory or work than the models in use by far, is an error. It has no delegates, no threads, and doesn't train.
package tflite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Limits of what is accepted. The int8 models in use have about 105 tensors, 60 operators, 1 500 elements in the largest
// tensor and 81 kB; the float32 ones 107 tensors, 64 operators, 197 000 elements, 1.3 MB, and 10 MB of tensors when a
// whole window is computed. Whatever is far beyond that isn't one of them, or isn't well.
const (
	maxFile     = 4 << 20
	maxGraphs   = 16
	maxTensors  = 1024
	maxOps      = 1024
	maxBuffers  = 2048
	maxRank     = 6
	maxElements = 1 << 20  // in one tensor
	maxArena    = 8 << 20  // bytes of all tensors that are computed
	maxFloats   = 16 << 20 // the same of a float32 model, with its weights
	maxProducts = 1 << 26  // in one step
)

// A Type is how the elements of a tensor are stored.
type Type int

// The types that occur, by their numbers in the file format.
const (
	Float32  Type = 0
	Int32    Type = 2
	UInt8    Type = 3
	Bool     Type = 6
	Int8     Type = 9
	Resource Type = 13
)

// Quantization tells what real number an element stands for: (element - ZeroPoint) * Scale.
type Quantization struct {
	Scale     float32
	ZeroPoint int
}

// A Model is a parsed file. It doesn't change, and any number of interpreters may run it.
type Model struct {
	graphs []graph
}

// A graph is one function of the model: graph 0 is the step, others are called by name to set the variables.
type graph struct {
	tensors []tensor
	inputs  []int
	outputs []int
	ops     []op
}

type tensor struct {
	typ        Type
	shape      []int
	data       []byte // of a constant; else empty
	scales     []float32
	zeroPoints []int64
}

// elements is how many elements a tensor of this shape has.
func elements(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// quantization is that of the whole tensor; ok tells whether it has just one.
func (t *tensor) quantization() (q Quantization, ok bool) {
	if len(t.scales) != 1 || len(t.zeroPoints) != 1 {
		return Quantization{}, false
	}
	return Quantization{t.scales[0], int(t.zeroPoints[0])}, true
}

type op struct {
	code    opcode
	inputs  []int // of tensors; -1: absent
	outputs []int
	options table
}

// Load reads and parses a file.
func Load(path string) (*Model, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("model %q: %d bytes are more than the limit of %d", filepath.Base(path), info.Size(), maxFile)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	m, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("model %q: %w", filepath.Base(path), err)
	}
	return m, nil
}

// Parse reads a model. The model keeps data, which must not be changed any more.
func Parse(data []byte) (*Model, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("%d bytes are more than the limit of %d", len(data), maxFile)
	}
	if len(data) < 8 {
		return nil, fmt.Errorf("truncated at byte %d", len(data))
	}
	if string(data[4:8]) != "TFL3" {
		return nil, errors.New("not a TensorFlow Lite model")
	}
	r := &reader{buf: data}
	root := r.table(r.offset(0))

	var codes []opcode
	root.each(1, func(_ int, t table) {
		// Codes above 127 came later, in a field of their own; the old field then says 127.
		codes = append(codes, opcode(max(t.uint8(0), t.int32(3, 0))))
	})
	var buffers [][]byte
	root.each(4, func(_ int, t table) { buffers = append(buffers, t.data(0)) })
	if len(codes) > maxOps || len(buffers) > maxBuffers {
		return nil, errors.New("damaged: too many operators or buffers")
	}

	m := new(Model)
	root.each(2, func(i int, t table) {
		if i >= maxGraphs {
			r.fail("damaged: more than %d graphs", maxGraphs)
		}
		if g, ok := readGraph(t, codes, buffers); ok {
			m.graphs = append(m.graphs, g)
		}
	})
	if r.err != nil {
		return nil, r.err
	}
	if len(m.graphs) == 0 {
		return nil, errors.New("damaged: no graph")
	}
	return m, nil
}

func readGraph(t table, codes []opcode, buffers [][]byte) (g graph, ok bool) {
	r := t.r
	t.each(0, func(i int, t table) {
		if i >= maxTensors {
			r.fail("damaged: more than %d tensors", maxTensors)
			return
		}
		g.tensors = append(g.tensors, readTensor(t, i, buffers))
	})
	g.inputs = t.int32s(1)
	g.outputs = t.int32s(2)
	g.checkIndices(r, g.inputs, 0)
	g.checkIndices(r, g.outputs, 0)
	t.each(3, func(i int, t table) {
		code := t.int32(0, 0)
		if i >= maxOps || code < 0 || code >= len(codes) {
			r.fail("damaged: operator %d has number %d of %d", i, code, len(codes))
			return
		}
		o := op{code: codes[code], inputs: t.int32s(1), outputs: t.int32s(2)}
		o.options, _ = t.table(4)
		g.checkIndices(r, o.inputs, -1)
		g.checkIndices(r, o.outputs, 0)
		g.ops = append(g.ops, o)
	})
	return g, r.err == nil
}

// checkIndices holds tensor numbers against the tensors there are.
func (g *graph) checkIndices(r *reader, indices []int, least int) {
	for _, i := range indices {
		if i < least || i >= len(g.tensors) {
			r.fail("damaged: tensor %d of %d", i, len(g.tensors))
		}
	}
}

func readTensor(t table, index int, buffers [][]byte) tensor {
	r := t.r
	x := tensor{shape: t.int32s(0), typ: Type(t.uint8(1))}
	n := 1
	for _, d := range x.shape {
		if d == 0 && len(x.shape) == 1 && x.typ == Int32 {
			return x // the shape of a single number, as a list without elements
		}
		if d < 1 || d > maxElements {
			r.fail("damaged: tensor %d has a dimension of %d", index, d)
			return x
		}
		if d > maxElements/n {
			r.fail("tensor %d has more than %d elements", index, maxElements)
			return x
		}
		n *= d
	}
	if len(x.shape) > maxRank {
		r.fail("tensor %d has %d dimensions", index, len(x.shape))
	}
	if q, ok := t.table(4); ok {
		x.scales = q.float32s(2)
		x.zeroPoints = q.int64s(3)
	}
	b := t.int32(2, 0)
	if b < 0 || b >= len(buffers) {
		r.fail("damaged: tensor %d has its data in buffer %d of %d", index, b, len(buffers))
		return x
	}
	x.data = buffers[b]
	if size := n * x.typ.size(); len(x.data) != 0 && len(x.data) != size {
		r.fail("damaged: tensor %d of %d bytes has %d bytes of data", index, size, len(x.data))
	}
	return x
}

// size is that of one element in bytes.
func (t Type) size() int {
	switch t {
	case Float32, Int32:
		return 4
	default:
		return 1
	}
}
