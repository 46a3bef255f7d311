package tflite

import (
	"errors"
	"fmt"
	"slices"
)

// Operators that only move elements. All of them see a tensor as outer × axis × inner elements around one axis.

// around is how many elements a tensor of this shape has before, along and behind an axis.
func around(shape []int, axis int) (outer, along, inner int) {
	return elements(shape[:axis]), shape[axis], elements(shape[axis+1:])
}

// axis makes a negative axis count from the end.
func axis(a int, shape []int) (int, error) {
	if a < 0 {
		a += len(shape)
	}
	if a < 0 || a >= len(shape) {
		return 0, fmt.Errorf("axis %d of %d", a, len(shape))
	}
	return a, nil
}

// sameButAxis tells whether two shapes differ along the axis only.
func sameButAxis(a, b []int, axis int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if i != axis && a[i] != b[i] {
			return false
		}
	}
	return true
}

func (p *planner) reshape(o op) error {
	_, in, err := p.value(o.inputs[0])
	if err != nil {
		return err
	}
	_, err = p.put(o.outputs[0], in)
	return err
}

func (p *planner) concatenation(o op) error {
	out := &p.graph.tensors[o.outputs[0]]
	a, err := axis(o.options.int32(0, 0), out.shape)
	if err != nil {
		return err
	}
	if o.options.uint8(1) != int(actNone) {
		return errors.New("an activation isn't known here")
	}
	dst, err := p.alloc(o.outputs[0])
	if err != nil {
		return err
	}
	q, err := p.quantization(o.outputs[0])
	if err != nil {
		return err
	}
	outer, _, inner := around(out.shape, a)
	width := elements(out.shape[a:])
	at := 0
	for _, i := range o.inputs {
		in, src, inQ, err := p.quantized(i)
		if err != nil {
			return err
		}
		if inQ != q {
			return errors.New("its inputs are quantized differently")
		}
		if !sameButAxis(in.shape, out.shape, a) || at+in.shape[a]*inner > width {
			return fmt.Errorf("%v doesn't fit into %v", in.shape, out.shape)
		}
		n := in.shape[a] * inner
		p.add(&rows{to: dst[at:], toStep: width, from: src, fromStep: n, size: n, count: outer})
		at += n
	}
	if at != width {
		return fmt.Errorf("the inputs are %d of %d elements", at, width)
	}
	return nil
}

// stridedSlice is a view, for it takes whole rows along one axis.
func (p *planner) stridedSlice(o op) error {
	in, src, err := p.value(o.inputs[0])
	if err != nil {
		return err
	}
	var args [3][]int // begin, end, stride
	for i := range args {
		if args[i], err = p.constant(o.inputs[i+1]); err != nil {
			return err
		}
		if len(args[i]) != len(in.shape) {
			return fmt.Errorf("%d bounds for %d dimensions", len(args[i]), len(in.shape))
		}
	}
	beginMask, endMask := o.options.int32(0, 0), o.options.int32(1, 0)
	if o.options.int32(2, 0) != 0 || o.options.int32(3, 0) != 0 || o.options.int32(4, 0) != 0 || o.options.bool(5) {
		return errors.New("a mask that isn't known here")
	}
	first, shape := 0, slices.Clone(in.shape)
	for d := range in.shape {
		if args[2][d] != 1 {
			return fmt.Errorf("a stride of %d", args[2][d])
		}
		begin, end := bound(args[0][d], in.shape[d]), bound(args[1][d], in.shape[d])
		if beginMask>>d&1 != 0 {
			begin = 0
		}
		if endMask>>d&1 != 0 {
			end = in.shape[d]
		}
		if begin >= end {
			return errors.New("nothing is left")
		}
		shape[d] = end - begin
		if shape[d] != in.shape[d] && elements(in.shape[:d]) != 1 {
			return errors.New("it isn't whole rows")
		}
		first += begin * elements(in.shape[d+1:])
	}
	if !slices.Equal(shape, p.graph.tensors[o.outputs[0]].shape) {
		return fmt.Errorf("it has the shape %v, not %v", shape, p.graph.tensors[o.outputs[0]].shape)
	}
	_, err = p.put(o.outputs[0], src[first:first+elements(shape)])
	return err
}

// bound is a place along a dimension of size n; a negative one counts from the end.
func bound(i, n int) int {
	if i < 0 {
		i += n
	}
	return min(max(i, 0), n)
}

func (p *planner) splitV(o op) error {
	in, src, err := p.value(o.inputs[0])
	if err != nil {
		return err
	}
	sizes, err := p.constant(o.inputs[1])
	if err != nil {
		return err
	}
	dim, err := p.constant(o.inputs[2])
	if err != nil {
		return err
	}
	a, err := axis(dim[0], in.shape)
	if err != nil {
		return err
	}
	if len(sizes) != len(o.outputs) {
		return fmt.Errorf("%d sizes for %d outputs", len(sizes), len(o.outputs))
	}
	outer, along, inner := around(in.shape, a)
	at := 0
	for i, size := range sizes {
		t := o.outputs[i]
		if size < 1 || size > along-at {
			return fmt.Errorf("a size of %d of %d", size, along)
		}
		if shape := p.graph.tensors[t].shape; !sameButAxis(shape, in.shape, a) || shape[a] != size {
			return fmt.Errorf("part %d has the shape %v", i, shape)
		}
		dst, err := p.alloc(t)
		if err != nil {
			return err
		}
		n := size * inner
		p.add(&rows{to: dst, toStep: n, from: src[at*inner:], fromStep: along * inner, size: n, count: outer})
		at += size
	}
	if at != along {
		return fmt.Errorf("the parts are %d of %d", at, along)
	}
	return nil
}

// rows copies count rows of size elements, which lie a step apart on each side.
type rows struct {
	to, from         []int8
	toStep, fromStep int
	size, count      int
}

func (k *rows) run() {
	for i := range k.count {
		copy(k.to[i*k.toStep:][:k.size], k.from[i*k.fromStep:])
	}
}
