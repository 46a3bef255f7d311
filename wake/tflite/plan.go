package tflite

import (
	"errors"
	"fmt"
	"slices"
)

// An Interpreter runs one stream through a model. It is for one goroutine at a time.
//
// Everything that depends only on the model is done once, in NewInterpreter: shapes and types are checked, factors are
// turned into integers, zero points are folded into biases, and each tensor gets its place in one small arena. A step
// then runs a list of kernels over slices that never move. Tensors that are only another look at the same elements
// (a RESHAPE, a STRIDED_SLICE of whole rows, a variable that is read before it is written) share that place.
type Interpreter struct {
	input  []int8
	output []uint8

	inShape, outShape []int
	inQ, outQ         Quantization

	steps     []kernel
	variables []variable
}

// A kernel is one operator with its tensors.
type kernel interface{ run() }

// A variable is a state that lives from step to step.
type variable struct {
	name    string
	now     []int8
	initial []int8
}

// Input is where the next step's input goes.
func (in *Interpreter) Input() []int8 { return in.input }

// Invoke runs one step on what is in Input.
func (in *Interpreter) Invoke() {
	for _, k := range in.steps {
		k.run()
	}
}

// Output is the last step's output. The next step overwrites it.
func (in *Interpreter) Output() []uint8 { return in.output }

// InputShape is the shape of the input. It must not be changed.
func (in *Interpreter) InputShape() []int { return in.inShape }

// OutputShape is the shape of the output. It must not be changed.
func (in *Interpreter) OutputShape() []int { return in.outShape }

// InputQuantization tells what the input's elements stand for.
func (in *Interpreter) InputQuantization() Quantization { return in.inQ }

// OutputQuantization tells what the output's elements stand for.
func (in *Interpreter) OutputQuantization() Quantization { return in.outQ }

// Reset sets all variables to what they are at the beginning of a stream.
func (in *Interpreter) Reset() {
	for _, v := range in.variables {
		copy(v.now, v.initial)
	}
}

// A planner makes an Interpreter.
type planner struct {
	model *Model
	graph *graph
	in    *Interpreter
	place [][]int8 // of each tensor that is computed, once it is known
	bytes []byte   // of the one uint8 tensor, the output of QUANTIZE
	names []string // of the variable each RESOURCE tensor stands for
	index int      // of the operator being planned
	arena int      // bytes given out so far
	work  int64    // products in a step so far
}

// NewInterpreter plans the run of the model.
func (m *Model) NewInterpreter() (*Interpreter, error) {
	g := &m.graphs[0]
	p := &planner{model: m, graph: g, in: new(Interpreter), place: make([][]int8, len(g.tensors)), names: make([]string, len(g.tensors))}
	if len(g.inputs) != 1 || len(g.outputs) != 1 {
		return nil, fmt.Errorf("%d inputs and %d outputs, not one of each", len(g.inputs), len(g.outputs))
	}
	input := &g.tensors[g.inputs[0]]
	var ok bool
	if p.in.inQ, ok = input.quantization(); !ok || input.typ != Int8 || len(input.data) != 0 || p.in.inQ.Scale <= 0 {
		return nil, errors.New("its input isn't quantized to int8")
	}
	p.in.inShape = input.shape
	in, err := p.alloc(g.inputs[0])
	if err != nil {
		return nil, err
	}
	p.in.input = in

	for _, o := range g.ops {
		if o.code == opVarHandle && len(o.outputs) > 0 {
			p.names[o.outputs[0]] = varName(o) // known to all operators, wherever they stand
		}
	}
	for i, o := range g.ops {
		p.index = i
		o.options = o.options.fork()
		err := p.plan(o)
		if err == nil && o.options.r != nil {
			err = o.options.r.err
		}
		if err != nil {
			return nil, fmt.Errorf("operator %d (%v): %w", i, o.code, err)
		}
	}

	for _, v := range p.in.variables {
		if v.initial == nil {
			return nil, fmt.Errorf("variable %q is never initialised", v.name)
		}
	}
	p.in.Reset()
	return p.in, p.finish()
}

// finish finds the output.
func (p *planner) finish() error {
	i := p.graph.outputs[0]
	t := &p.graph.tensors[i]
	p.in.outShape = t.shape
	var ok bool
	if p.in.outQ, ok = t.quantization(); !ok {
		return errors.New("its output isn't quantized")
	}
	if t.typ != UInt8 || p.bytes == nil {
		return errors.New("its output isn't quantized to uint8")
	}
	p.in.output = p.bytes
	return nil
}

// plan adds the kernel for o, if it needs one.
func (p *planner) plan(o op) error {
	if n, ok := arity[o.code]; !ok {
		return errors.New("not known here")
	} else if len(o.inputs) < n.in || len(o.outputs) < n.out {
		return fmt.Errorf("%d inputs and %d outputs", len(o.inputs), len(o.outputs))
	}
	switch o.code {
	case opCallOnce:
		return p.callOnce(o)
	case opVarHandle:
		return nil
	case opReadVariable:
		return p.readVariable(o)
	case opAssignVariable:
		return p.assignVariable(o)
	case opReshape:
		return p.reshape(o)
	case opConcatenation:
		return p.concatenation(o)
	case opStridedSlice:
		return p.stridedSlice(o)
	case opSplitV:
		return p.splitV(o)
	case opConv2D:
		return p.conv2D(o)
	case opDepthwiseConv2D:
		return p.depthwiseConv2D(o)
	case opFullyConnected:
		return p.fullyConnected(o)
	case opLogistic:
		return p.logistic(o)
	default:
		return p.quantize(o)
	}
}

// arity is the least number of tensors that an operator needs.
var arity = map[opcode]struct{ in, out int }{
	opCallOnce: {0, 0}, opVarHandle: {0, 1}, opReadVariable: {1, 1}, opAssignVariable: {2, 0}, opReshape: {1, 1},
	opConcatenation: {1, 1}, opStridedSlice: {4, 1}, opSplitV: {3, 1}, opConv2D: {3, 1}, opDepthwiseConv2D: {3, 1},
	opFullyConnected: {3, 1}, opLogistic: {1, 1}, opQuantize: {1, 1},
}

// value is the int8 tensor i that an operator takes.
func (p *planner) value(i int) (*tensor, []int8, error) {
	if i < 0 {
		return nil, nil, errors.New("an input is missing")
	}
	t := &p.graph.tensors[i]
	if t.typ != Int8 {
		return nil, nil, fmt.Errorf("tensor %d isn't int8", i)
	}
	if p.place[i] == nil {
		if len(t.data) == 0 {
			return nil, nil, fmt.Errorf("tensor %d is used before it is computed", i)
		}
		p.place[i] = int8s(t.data)
	}
	return t, p.place[i], nil
}

// quantized is value for an operator that calculates with the real numbers.
func (p *planner) quantized(i int) (*tensor, []int8, Quantization, error) {
	t, v, err := p.value(i)
	if err != nil {
		return nil, nil, Quantization{}, err
	}
	q, err := p.quantization(i)
	return t, v, q, err
}

func (p *planner) quantization(i int) (Quantization, error) {
	q, ok := p.graph.tensors[i].quantization()
	if !ok || !(q.Scale > 0) || q.ZeroPoint < -128 || q.ZeroPoint > 255 {
		return q, fmt.Errorf("tensor %d isn't quantized", i)
	}
	return q, nil
}

// constant is the values of the int32 tensor i, which must be fixed.
func (p *planner) constant(i int) ([]int, error) {
	if i < 0 {
		return nil, errors.New("an input is missing")
	}
	t := &p.graph.tensors[i]
	if t.typ != Int32 || len(t.data) == 0 {
		return nil, fmt.Errorf("tensor %d isn't an int32 constant", i)
	}
	r := reader{buf: t.data}
	v := make([]int, elements(t.shape))
	for k := range v {
		v[k] = r.i32(4 * k)
	}
	return v, r.err
}

// alloc gives tensor i, which is about to be computed, its place.
func (p *planner) alloc(i int) ([]int8, error) {
	t := &p.graph.tensors[i]
	if t.typ != Int8 {
		return nil, fmt.Errorf("tensor %d isn't int8", i)
	}
	n := elements(t.shape)
	if p.arena += n; p.arena > maxArena {
		return nil, fmt.Errorf("more than %d bytes of tensors", maxArena)
	}
	return p.put(i, make([]int8, n))
}

// put makes v the place of tensor i.
func (p *planner) put(i int, v []int8) ([]int8, error) {
	t := &p.graph.tensors[i]
	if p.place[i] != nil || len(t.data) != 0 {
		return nil, fmt.Errorf("tensor %d is computed twice", i)
	}
	if len(v) != elements(t.shape) {
		return nil, fmt.Errorf("tensor %d has room for %d elements, not %d", i, elements(t.shape), len(v))
	}
	p.place[i] = v
	return v, nil
}

// products counts those of an operator with outputs of n products each.
func (p *planner) products(outputs, n int) error {
	if p.work += int64(outputs) * int64(n); p.work > maxProducts {
		return fmt.Errorf("more than %d products in a step", maxProducts)
	}
	return nil
}

func (p *planner) add(k kernel) { p.in.steps = append(p.in.steps, k) }

// variable is the one of the RESOURCE tensor i.
func (p *planner) variable(i int) (*variable, error) {
	if i < 0 || p.names[i] == "" {
		return nil, errors.New("a variable without a handle")
	}
	v := slices.IndexFunc(p.in.variables, func(v variable) bool { return v.name == p.names[i] })
	if v < 0 {
		return nil, fmt.Errorf("variable %q is never initialised", p.names[i])
	}
	return &p.in.variables[v], nil
}

// int8s is a copy of b: bytes and int8s are not the same to Go, and the copy lies where only weights are.
func int8s(b []byte) []int8 {
	v := make([]int8, len(b))
	for i, x := range b {
		v[i] = int8(x)
	}
	return v
}
