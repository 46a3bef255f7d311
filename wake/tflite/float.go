package tflite

import (
	"errors"
	"fmt"
	"slices"
)

// A FloatInterpreter runs float32 models, as openWakeWord's are. It is planned once like an Interpreter, with the same
// bounds, and a step allocates nothing. It is for one goroutine at a time.
//
// A model that looks at a window of time (axis 1) and is run again each time the window has moved can be planned with
// FloatOptions.Fresh: only what the new rows change is computed then. Each operator that looks at more than one row
// keeps the last rows it will need again; the results are the same, for rows are computed alike wherever they stand.
type FloatInterpreter struct {
	input, output     []float32
	inShape, outShape []int
	steps             []kernel
	windows           []*window // the state
}

// FloatOptions are how a float model is planned.
type FloatOptions struct {
	Input []int // shape of the input; nil is the model's own
	Fresh int   // rows along axis 1 that each step brings; 0: all of them
}

// Input is where the next step's input goes: the fresh rows if there was FloatOptions.Fresh. Its contents don't
// survive a step.
func (in *FloatInterpreter) Input() []float32 { return in.input }

// Invoke runs one step on what is in Input.
func (in *FloatInterpreter) Invoke() {
	for _, k := range in.steps {
		k.run()
	}
}

// Output is the last step's output. The next step overwrites it.
func (in *FloatInterpreter) Output() []float32 { return in.output }

// InputShape is the shape of the input. It must not be changed.
func (in *FloatInterpreter) InputShape() []int { return in.inShape }

// OutputShape is the shape of the output. It must not be changed.
func (in *FloatInterpreter) OutputShape() []int { return in.outShape }

// Reset takes the rows that were kept back to what they were at the last Mark, or to zero.
func (in *FloatInterpreter) Reset() {
	for _, w := range in.windows {
		copy(w.buf, w.initial)
	}
}

// Mark makes the state as it is now the one that Reset goes back to.
func (in *FloatInterpreter) Mark() {
	for _, w := range in.windows {
		copy(w.initial, w.buf)
	}
}

// A floatPlanner makes a FloatInterpreter of one graph.
type floatPlanner struct {
	model *Model
	index int // of the graph
	graph *graph
	in    *FloatInterpreter
	place [][]float32 // of each tensor, once it is known; a bool is 0 or 1
	shape [][]int     // of each tensor, by then
	fresh bool        // axis 1 is the time, and the shapes have only the fresh rows
	bound *floatBound
}

// floatBound is what all graphs of a model together may use.
type floatBound struct {
	arena int   // bytes given out so far, weights included
	work  int64 // products in a step so far
	ops   int   // operators so far: a graph that is named twice is planned twice
}

// IsFloat tells whether a model's input is float32, which is the FloatInterpreter's, and not int8.
func (m *Model) IsFloat() bool {
	g := &m.graphs[0]
	return len(g.inputs) == 1 && g.tensors[g.inputs[0]].typ == Float32
}

// FloatInputShape is the shape of a float model's input as it is in the file.
func (m *Model) FloatInputShape() []int {
	if !m.IsFloat() {
		return nil
	}
	g := &m.graphs[0]
	return slices.Clone(g.tensors[g.inputs[0]].shape)
}

// NewFloat plans the run of a float32 model.
func (m *Model) NewFloat(o FloatOptions) (*FloatInterpreter, error) {
	g := &m.graphs[0]
	if len(g.inputs) != 1 || len(g.outputs) != 1 {
		return nil, fmt.Errorf("%d inputs and %d outputs, not one of each", len(g.inputs), len(g.outputs))
	}
	if !m.IsFloat() || len(g.tensors[g.inputs[0]].data) != 0 {
		return nil, errors.New("its input isn't float32")
	}
	shape := slices.Clone(g.tensors[g.inputs[0]].shape)
	if o.Input != nil {
		if len(o.Input) != len(shape) {
			return nil, fmt.Errorf("an input of %v isn't one of %v", o.Input, shape)
		}
		shape = slices.Clone(o.Input)
	}
	if o.Fresh != 0 {
		if len(shape) < 2 || shape[0] != 1 || o.Fresh < 1 || o.Fresh > shape[1] {
			return nil, fmt.Errorf("%d fresh rows of %v", o.Fresh, shape)
		}
		shape[1] = o.Fresh
	}

	p := newFloatPlanner(m, 0, new(FloatInterpreter), new(floatBound))
	p.fresh = o.Fresh != 0
	var err error
	if p.in.input, err = p.alloc(g.inputs[0], shape); err != nil {
		return nil, err
	}
	p.in.inShape = shape
	if err := p.ops(); err != nil {
		return nil, err
	}
	if p.in.output, p.in.outShape, err = p.value(g.outputs[0]); err != nil {
		return nil, fmt.Errorf("its output: %w", err)
	}
	for _, w := range p.in.windows {
		w.initial = slices.Clone(w.buf)
	}
	return p.in, nil
}

func newFloatPlanner(m *Model, index int, in *FloatInterpreter, b *floatBound) *floatPlanner {
	g := &m.graphs[index]
	return &floatPlanner{
		model: m, index: index, graph: g, in: in, bound: b,
		place: make([][]float32, len(g.tensors)), shape: make([][]int, len(g.tensors)),
	}
}

// ops plans all operators of the graph.
func (p *floatPlanner) ops() error {
	for i, o := range p.graph.ops {
		if p.bound.ops++; p.bound.ops > maxOps {
			return fmt.Errorf("more than %d operators", maxOps)
		}
		o.options = o.options.fork()
		err := p.plan(o)
		if err == nil && o.options.r != nil {
			err = o.options.r.err
		}
		if err != nil {
			return fmt.Errorf("operator %d (%v): %w", i, o.code, err)
		}
	}
	return nil
}

func (p *floatPlanner) plan(o op) error {
	f, ok := floatOperator(o.code)
	switch {
	case !ok:
		return errors.New("not known here in float32")
	case len(o.inputs) < f.in || len(o.outputs) < f.out:
		return fmt.Errorf("%d inputs and %d outputs", len(o.inputs), len(o.outputs))
	case p.fresh && !f.rows:
		return errors.New("it can't be done row by row")
	}
	return f.plan(p, o)
}

// A floatOp is how an operator is planned.
type floatOp struct {
	in, out int  // the least number of tensors it needs
	rows    bool // it may be done row by row
	plan    func(*floatPlanner, op) error
}

// floatOperator is that of a code; ok tells whether it is known.
func floatOperator(c opcode) (f floatOp, ok bool) {
	switch c {
	case opConv2D:
		return floatOp{2, 1, true, (*floatPlanner).floatConv2D}, true
	case opFullyConnected:
		return floatOp{2, 1, false, (*floatPlanner).floatFullyConnected}, true
	case opBatchMatMul:
		return floatOp{2, 1, false, (*floatPlanner).batchMatMul}, true
	case opMaxPool2D:
		return floatOp{1, 1, true, (*floatPlanner).maxPool2D}, true
	case opPad:
		return floatOp{2, 1, true, (*floatPlanner).floatPad}, true
	case opReshape:
		return floatOp{1, 1, false, (*floatPlanner).floatReshape}, true
	case opExpandDims:
		return floatOp{2, 1, false, (*floatPlanner).floatExpand}, true
	case opSqueeze:
		return floatOp{1, 1, false, (*floatPlanner).floatSqueeze}, true
	case opTranspose:
		return floatOp{2, 1, false, (*floatPlanner).transpose}, true
	case opIf:
		return floatOp{1, 1, false, (*floatPlanner).choose}, true
	case opLogistic:
		return floatOp{1, 1, true, unary(sigmoids)}, true
	case opLog:
		return floatOp{1, 1, true, unary(logarithms)}, true
	case opRsqrt:
		return floatOp{1, 1, true, unary(inverseRoots)}, true
	case opReLU:
		return floatOp{1, 1, true, unary(rectified)}, true
	case opLeakyReLU:
		return floatOp{1, 1, true, (*floatPlanner).leakyReLU}, true
	case opAdd:
		return floatOp{2, 1, true, paired(each(sum), true)}, true
	case opSub:
		return floatOp{2, 1, true, paired(each(difference), true)}, true
	case opMul:
		return floatOp{2, 1, true, paired(each(product), true)}, true
	case opDiv:
		return floatOp{2, 1, true, paired(each(quotient), true)}, true
	case opMaximum:
		return floatOp{2, 1, true, paired(maxima, false)}, true
	case opMinimum:
		return floatOp{2, 1, true, paired(each(lesser), false)}, true
	case opSquaredDifference:
		return floatOp{2, 1, true, paired(each(squaredDifference), false)}, true
	case opGreaterEqual:
		return floatOp{2, 1, false, paired(each(notLess), false)}, true
	case opMean:
		return floatOp{2, 1, false, reduce(mean)}, true
	case opReduceMax:
		return floatOp{2, 1, false, reduce(highest)}, true
	}
	return floatOp{}, false
}

// value is the float tensor i that an operator takes.
func (p *floatPlanner) value(i int) ([]float32, []int, error) {
	if i < 0 {
		return nil, nil, errors.New("an input is missing")
	}
	t := &p.graph.tensors[i]
	if p.place[i] == nil {
		if len(t.data) == 0 {
			return nil, nil, fmt.Errorf("tensor %d is used before it is computed", i)
		}
		if t.typ != Float32 {
			return nil, nil, fmt.Errorf("tensor %d isn't float32", i)
		}
		if err := p.arena(elements(t.shape)); err != nil {
			return nil, nil, err
		}
		p.place[i], p.shape[i] = float32s(t.data), t.shape
	}
	return p.place[i], p.shape[i], nil
}

// constant is the values of the int32 tensor i, which must be fixed.
func (p *floatPlanner) constant(i int) ([]int, error) {
	if i < 0 {
		return nil, errors.New("an input is missing")
	}
	t := &p.graph.tensors[i]
	if t.typ != Int32 || (len(t.data) == 0 && elements(t.shape) != 0) {
		return nil, fmt.Errorf("tensor %d isn't an int32 constant", i)
	}
	r := reader{buf: t.data}
	v := make([]int, elements(t.shape))
	for k := range v {
		v[k] = r.i32(4 * k)
	}
	return v, r.err
}

// weights is the float tensor i, which must be fixed.
func (p *floatPlanner) weights(i int) ([]float32, []int, error) {
	if i >= 0 && len(p.graph.tensors[i].data) == 0 {
		return nil, nil, fmt.Errorf("tensor %d isn't a constant", i)
	}
	return p.value(i)
}

// arena counts n more floats.
func (p *floatPlanner) arena(n int) error {
	if p.bound.arena += 4 * n; p.bound.arena > maxFloats {
		return fmt.Errorf("more than %d bytes of tensors", maxFloats)
	}
	return nil
}

// alloc gives tensor i, which is about to be computed, a place of this shape.
func (p *floatPlanner) alloc(i int, shape []int) ([]float32, error) {
	n := 1
	for _, d := range shape {
		if d < 1 || d > maxElements/n {
			return nil, fmt.Errorf("tensor %d would have the shape %v", i, shape)
		}
		n *= d
	}
	if len(shape) > maxRank {
		return nil, fmt.Errorf("tensor %d would have %d dimensions", i, len(shape))
	}
	if err := p.arena(n); err != nil {
		return nil, err
	}
	v := make([]float32, n)
	return v, p.put(i, v, shape)
}

// put makes v the place of tensor i.
func (p *floatPlanner) put(i int, v []float32, shape []int) error {
	t := &p.graph.tensors[i]
	if t.typ != Float32 && t.typ != Bool {
		return fmt.Errorf("tensor %d isn't float32", i)
	}
	if p.place[i] != nil || len(t.data) != 0 {
		return fmt.Errorf("tensor %d is computed twice", i)
	}
	if len(shape) > maxRank || elements(shape) != len(v) {
		return fmt.Errorf("tensor %d would have the shape %v for %d elements", i, shape, len(v))
	}
	p.place[i], p.shape[i] = v, shape
	return nil
}

// work counts the products of an operator with outputs of n products each.
func (p *floatPlanner) work(outputs, n int) error {
	if p.bound.work += int64(outputs) * int64(n); p.bound.work > maxProducts {
		return fmt.Errorf("more than %d products in a step", maxProducts)
	}
	return nil
}

func (p *floatPlanner) add(k kernel) { p.in.steps = append(p.in.steps, k) }

// float32s is what the bytes of a constant stand for.
func float32s(b []byte) []float32 {
	v := make([]float32, len(b)/4)
	for i := range v {
		v[i] = float32At(b, i)
	}
	return v
}
