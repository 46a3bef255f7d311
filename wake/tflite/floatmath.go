package tflite

import (
	"errors"
	"fmt"
	"math"
)

// Float operators on each element by itself, and those that make one of many.

// unary is an operator on one tensor's elements.
func unary(f func(to, from []float32)) func(*floatPlanner, op) error {
	return func(p *floatPlanner, o op) error { return p.unary(o, f) }
}

func (p *floatPlanner) unary(o op, f func(to, from []float32)) error {
	from, shape, err := p.value(o.inputs[0])
	if err != nil {
		return err
	}
	to, err := p.alloc(o.outputs[0], shape)
	if err != nil {
		return err
	}
	p.add(&mapping{to, from, f})
	return nil
}

type mapping struct {
	to, from []float32
	f        func(to, from []float32)
}

func (k *mapping) run() { k.f(k.to, k.from) }

func sigmoids(to, from []float32) {
	for i, x := range from {
		to[i] = float32(1 / (1 + math.Exp(-float64(x))))
	}
}

func logarithms(to, from []float32) {
	for i, x := range from {
		to[i] = float32(math.Log(float64(x)))
	}
}

func inverseRoots(to, from []float32) {
	for i, x := range from {
		to[i] = float32(1 / math.Sqrt(float64(x)))
	}
}

func rectified(to, from []float32) {
	to = to[:len(from)]
	for i, x := range from {
		if x < 0 {
			x = 0
		}
		to[i] = x
	}
}

func (p *floatPlanner) leakyReLU(o op) error {
	alpha := o.options.float32(0)
	return p.unary(o, func(to, from []float32) {
		to = to[:len(from)]
		for i, x := range from {
			if x < 0 {
				x *= alpha
			}
			to[i] = x
		}
	})
}

// paired is an operator on the elements of two tensors, either of which is repeated along the axes where it has only
// one. fused tells that it has an activation in option 0.
func paired(f func(to, a, b []float32), fused bool) func(*floatPlanner, op) error {
	return func(p *floatPlanner, o op) error {
		a, aShape, err := p.value(o.inputs[0])
		if err != nil {
			return err
		}
		b, bShape, err := p.value(o.inputs[1])
		if err != nil {
			return err
		}
		shape, err := broadcast(aShape, bShape)
		if err != nil {
			return err
		}
		// Two streams could have come different ways, with rows of different times.
		fixed := func(i int) bool { return len(p.graph.tensors[o.inputs[i]].data) != 0 }
		if p.fresh && (len(a) != 1 || !fixed(0)) && (len(b) != 1 || !fixed(1)) {
			return fmt.Errorf("%v with %v can't be done row by row", aShape, bShape)
		}
		to, err := p.alloc(o.outputs[0], shape)
		if err != nil {
			return err
		}
		if a, err = p.repeated(a, aShape, shape); err != nil {
			return err
		}
		if b, err = p.repeated(b, bShape, shape); err != nil {
			return err
		}
		p.add(&pairs{to, a, b, f})
		if !fused {
			return nil
		}
		return p.activate(to, activation(o.options.uint8(0)))
	}
}

type pairs struct {
	to, a, b []float32
	f        func(to, a, b []float32)
}

func (k *pairs) run() { k.f(k.to, k.a, k.b) }

// activate adds a fused activation.
func (p *floatPlanner) activate(v []float32, a activation) error {
	switch a {
	case actNone:
	case actReLU:
		p.add(&mapping{v, v, rectified})
	default:
		return fmt.Errorf("activation %d isn't known here", a)
	}
	return nil
}

// broadcast is the shape of the result of two tensors.
func broadcast(a, b []int) ([]int, error) {
	shape := make([]int, max(len(a), len(b)))
	for i := range shape {
		x, y := 1, 1
		if k := i - len(shape) + len(a); k >= 0 {
			x = a[k]
		}
		if k := i - len(shape) + len(b); k >= 0 {
			y = b[k]
		}
		if x != y && x != 1 && y != 1 {
			return nil, fmt.Errorf("%v with %v", a, b)
		}
		shape[i] = max(x, y)
	}
	return shape, nil
}

// repeated is v as a tensor of the shape, or as the only element of all of it.
func (p *floatPlanner) repeated(v []float32, from, shape []int) ([]float32, error) {
	if len(v) == 1 || len(v) == elements(shape) {
		return v, nil
	}
	steps := make([]int, len(shape))
	step := 1
	for i := len(from) - 1; i >= 0; i-- {
		if from[i] > 1 {
			steps[i+len(shape)-len(from)] = step
		}
		step *= from[i]
	}
	return p.gathered(v, shape, steps)
}

// gathered is a tensor of the shape that is filled with elements of v each step; along each axis they lie so many
// elements apart.
func (p *floatPlanner) gathered(v []float32, shape, steps []int) ([]float32, error) {
	n := elements(shape)
	if err := p.arena(2 * n); err != nil {
		return nil, err
	}
	k := &gather{to: make([]float32, n), from: v, index: make([]int32, n)}
	for i := range k.index {
		at, rest := 0, i
		for a := len(shape) - 1; a >= 0; a-- {
			at += rest % shape[a] * steps[a]
			rest /= shape[a]
		}
		k.index[i] = int32(at)
	}
	p.add(k)
	return k.to, nil
}

type gather struct {
	to, from []float32
	index    []int32
}

func (k *gather) run() {
	for i, at := range k.index {
		k.to[i] = k.from[at]
	}
}

// each makes a loop over the elements of f; either side may have just one.
func each(f func(a, b float32) float32) func(to, a, b []float32) {
	return func(to, a, b []float32) {
		switch {
		case len(b) == 1:
			y := b[0]
			for i := range to {
				to[i] = f(a[min(i, len(a)-1)], y)
			}
		case len(a) == 1:
			for i := range to {
				to[i] = f(a[0], b[i])
			}
		default:
			for i := range to {
				to[i] = f(a[i], b[i])
			}
		}
	}
}

func sum(a, b float32) float32        { return a + b }
func difference(a, b float32) float32 { return a - b }
func product(a, b float32) float32    { return a * b }
func quotient(a, b float32) float32   { return a / b }

func squaredDifference(a, b float32) float32 { return (a - b) * (a - b) }

func lesser(a, b float32) float32 {
	if b < a {
		return b
	}
	return a
}

func greater(a, b float32) float32 {
	if b > a {
		return b
	}
	return a
}

func notLess(a, b float32) float32 {
	if a >= b {
		return 1
	}
	return 0
}

// maxima is each(greater), which is one of the two that occur on large tensors: there with one b.
func maxima(to, a, b []float32) {
	if len(b) != 1 || len(a) != len(to) {
		each(greater)(to, a, b)
		return
	}
	least := b[0]
	a = a[:len(to)]
	for i, x := range a {
		if x < least {
			x = least
		}
		to[i] = x
	}
}

// reduce is an operator that makes one element of all along some axes.
func reduce(f func(v []float32) float32) func(*floatPlanner, op) error {
	return func(p *floatPlanner, o op) error {
		v, shape, err := p.value(o.inputs[0])
		if err != nil {
			return err
		}
		axes, err := p.constant(o.inputs[1])
		if err != nil {
			return err
		}
		gone := make([]bool, len(shape))
		for _, a := range axes {
			if a, err = axis(a, shape); err != nil {
				return err
			}
			gone[a] = true
		}
		// The axes that go must be the last ones, so that what is joined lies together.
		size, left := 1, []int{}
		for i, d := range shape {
			switch {
			case gone[i]:
				size *= d
				if o.options.bool(0) {
					left = append(left, 1)
				}
			case size > 1 && d > 1:
				return errors.New("only the last axes can go here")
			default:
				left = append(left, d)
			}
		}
		if err := p.work(1, len(v)); err != nil {
			return err
		}
		to, err := p.alloc(o.outputs[0], left)
		if err != nil {
			return err
		}
		p.add(&reduction{to, v, size, f})
		return nil
	}
}

type reduction struct {
	to, from []float32
	size     int
	f        func(v []float32) float32
}

func (k *reduction) run() {
	for i := range k.to {
		k.to[i] = k.f(k.from[i*k.size:][:k.size])
	}
}

func mean(v []float32) float32 {
	var s float64
	for _, x := range v {
		s += float64(x)
	}
	return float32(s / float64(len(v)))
}

func highest(v []float32) float32 {
	h := v[0]
	for _, x := range v {
		h = greater(h, x)
	}
	return h
}
