package tflite

import (
	"errors"
	"fmt"
	"slices"
)

// Float operators that only move elements, and the one that chooses.

// floatReshape, floatExpand and floatSqueeze are only another look at the same elements.
func (p *floatPlanner) floatReshape(o op) error {
	v, _, err := p.value(o.inputs[0])
	if err != nil {
		return err
	}
	shape := slices.Clone(p.graph.tensors[o.outputs[0]].shape)
	if len(o.inputs) > 1 {
		if shape, err = p.constant(o.inputs[1]); err != nil {
			return err
		}
	}
	open, n := -1, 1
	for i, d := range shape {
		switch {
		case d == -1 && open < 0:
			open = i
		case d < 1 || d > maxElements/n:
			return fmt.Errorf("the shape is %v", shape)
		default:
			n *= d
		}
	}
	if open >= 0 {
		shape[open] = len(v) / n
	}
	return p.put(o.outputs[0], v, shape)
}

func (p *floatPlanner) floatExpand(o op) error {
	v, shape, err := p.value(o.inputs[0])
	if err != nil {
		return err
	}
	at, err := p.constant(o.inputs[1])
	if err != nil {
		return err
	}
	if len(at) != 1 {
		return fmt.Errorf("%d axes", len(at))
	}
	a := at[0]
	if a < 0 {
		a += len(shape) + 1
	}
	if a < 0 || a > len(shape) {
		return fmt.Errorf("axis %d of %d", at[0], len(shape))
	}
	return p.put(o.outputs[0], v, slices.Insert(slices.Clone(shape), a, 1))
}

func (p *floatPlanner) floatSqueeze(o op) error {
	v, shape, err := p.value(o.inputs[0])
	if err != nil {
		return err
	}
	gone := make([]bool, len(shape))
	axes := o.options.int32s(0)
	for _, a := range axes {
		if a, err = axis(a, shape); err != nil {
			return err
		}
		if shape[a] != 1 {
			return fmt.Errorf("axis %d of %v isn't 1", a, shape)
		}
		gone[a] = true
	}
	left := []int{}
	for i, d := range shape {
		if !gone[i] && (len(axes) > 0 || d != 1) {
			left = append(left, d)
		}
	}
	return p.put(o.outputs[0], v, left)
}

func (p *floatPlanner) transpose(o op) error {
	v, shape, err := p.value(o.inputs[0])
	if err != nil {
		return err
	}
	order, err := p.constant(o.inputs[1])
	if err != nil {
		return err
	}
	if len(order) != len(shape) {
		return fmt.Errorf("%d axes of %d", len(order), len(shape))
	}
	seen := make([]bool, len(shape))
	out, steps := make([]int, len(shape)), make([]int, len(shape))
	for i, a := range order {
		if a, err = axis(a, shape); err != nil {
			return err
		}
		if seen[a] {
			return fmt.Errorf("axis %d comes twice", a)
		}
		seen[a] = true
		out[i], steps[i] = shape[a], elements(shape[a+1:])
	}
	w, err := p.gathered(v, out, steps)
	if err != nil {
		return err
	}
	return p.put(o.outputs[0], w, out)
}

// floatPad puts zeros around the columns, which is the only kind of padding that occurs by itself.
func (p *floatPlanner) floatPad(o op) error {
	v, shape, err := p.value(o.inputs[0])
	if err != nil {
		return err
	}
	pads, err := p.constant(o.inputs[1])
	if err != nil {
		return err
	}
	if len(shape) != 4 || len(pads) != 8 {
		return fmt.Errorf("%v with %d paddings", shape, len(pads))
	}
	for i, n := range pads {
		if n < 0 || n > maxElements || (n != 0 && i/2 != 2) {
			return fmt.Errorf("a padding of %v isn't known here", pads)
		}
	}
	out := []int{shape[0], shape[1], shape[2] + pads[4] + pads[5], shape[3]}
	to, err := p.alloc(o.outputs[0], out)
	if err != nil {
		return err
	}
	p.add(&floatRows{
		to: to[pads[4]*shape[3]:], toStep: out[2] * out[3],
		from: v, size: shape[2] * shape[3], count: shape[0] * shape[1],
	})
	return nil
}

// floatRows copies rows of size elements, which lie together on one side and a step apart on the other.
type floatRows struct {
	to, from            []float32
	toStep, size, count int
}

func (k *floatRows) run() {
	for i := range k.count {
		copy(k.to[i*k.toStep:][:k.size], k.from[i*k.size:])
	}
}

// choose is IF: one of two graphs is run. Either may only name graphs behind its own, so that there is an end to it.
func (p *floatPlanner) choose(o op) error {
	cond, _, err := p.value(o.inputs[0])
	if err != nil {
		return err
	}
	if len(cond) != 1 || p.graph.tensors[o.inputs[0]].typ != Bool {
		return errors.New("its condition isn't a bool")
	}
	k := &choice{cond: cond}
	var results [2][]float32
	var shape []int
	for i := range 2 {
		branch := FloatInterpreter{}
		n := o.options.int32(i, 0)
		if n <= p.index || n >= len(p.model.graphs) {
			return fmt.Errorf("graph %d of %d", n, len(p.model.graphs))
		}
		g := &p.model.graphs[n]
		if len(g.inputs) != len(o.inputs)-1 || len(g.outputs) != 1 || len(o.outputs) != 1 {
			return fmt.Errorf("graph %d has %d inputs and %d outputs", n, len(g.inputs), len(g.outputs))
		}
		sub := newFloatPlanner(p.model, n, &branch, p.bound)
		for j, t := range g.inputs {
			if err := sub.pass(p, o.inputs[j+1], t); err != nil {
				return fmt.Errorf("graph %d: %w", n, err)
			}
		}
		if err := sub.ops(); err != nil {
			return fmt.Errorf("graph %d: %w", n, err)
		}
		var s []int
		if results[i], s, err = sub.value(g.outputs[0]); err != nil {
			return fmt.Errorf("graph %d: %w", n, err)
		}
		if i == 1 && !slices.Equal(shape, s) {
			return fmt.Errorf("it gives either %v or %v", shape, s)
		}
		shape = s
		k.steps[i] = branch.steps
	}
	to, err := p.alloc(o.outputs[0], shape)
	if err != nil {
		return err
	}
	k.to, k.from = to, results
	p.add(k)
	return nil
}

// pass makes tensor i of the graph that asks tensor t of this one. Constants stay constants.
func (p *floatPlanner) pass(from *floatPlanner, i, t int) error {
	if i < 0 {
		return errors.New("an input is missing")
	}
	src := &from.graph.tensors[i]
	if src.typ != p.graph.tensors[t].typ {
		return fmt.Errorf("input %d is of another type", t)
	}
	if src.typ == Int32 || len(src.data) != 0 {
		g := *p.graph // the model is shared and stays as it is
		g.tensors = slices.Clone(g.tensors)
		g.tensors[t].data, g.tensors[t].shape = src.data, src.shape
		p.graph = &g
		return nil
	}
	v, shape, err := from.value(i)
	if err != nil {
		return err
	}
	return p.put(t, v, shape)
}

type choice struct {
	cond  []float32
	steps [2][]kernel // if so, and if not
	from  [2][]float32
	to    []float32
}

func (k *choice) run() {
	i := 0
	if k.cond[0] == 0 {
		i = 1
	}
	for _, s := range k.steps[i] {
		s.run()
	}
	copy(k.to, k.from[i])
}
