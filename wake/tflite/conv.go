package tflite

import (
	"errors"
	"fmt"
)

// Operators that multiply. A weight's zero point is 0, and there is no padding, so that the input's zero point comes
// out of the sum: Σ (x-z)·w = Σ x·w - z·Σw, the latter being known beforehand and part of the bias.

// weighted is what the three of them share.
type weighted struct {
	out          []int8
	in           []int8
	weights      []int8
	bias         []int32      // with the input's zero point in it
	factors      []multiplier // of each output channel
	zero, lo, hi int32
}

// operands are the tensors of an operator that multiplies: an input, a filter, and an output, which has no values yet.
type operands struct {
	in, filter, out *tensor
	values, weights []int8
	inQ             Quantization
}

func (p *planner) operands(o op) (t operands, err error) {
	if t.in, t.values, t.inQ, err = p.quantized(o.inputs[0]); err != nil {
		return t, err
	}
	t.filter, t.weights, err = p.value(o.inputs[1])
	t.out = &p.graph.tensors[o.outputs[0]]
	return t, err
}

// images checks that all three have rows, columns and channels, the input only once.
func (t *operands) images() error {
	if len(t.in.shape) != 4 || len(t.filter.shape) != 4 || len(t.out.shape) != 4 || t.in.shape[3] != t.filter.shape[3] {
		return fmt.Errorf("%v with %v gives no %v", t.in.shape, t.filter.shape, t.out.shape)
	}
	if t.in.shape[0] != 1 || t.in.shape[2] != t.filter.shape[2] || t.in.shape[1] < t.filter.shape[1] {
		return t.unknown()
	}
	return nil
}

func (t *operands) unknown() error {
	return fmt.Errorf("a window of %v on %v isn't known here", t.filter.shape, t.in.shape)
}

// gives checks that the output has room for count rows, or whatever else, of channels.
func (t *operands) gives(count, channels int) error {
	if shape := t.out.shape; elements(shape) != count*channels || len(shape) == 4 && shape[3] != channels {
		return fmt.Errorf("it gives no %v", shape)
	}
	return nil
}

// plan checks the scales and fills in all but the sums of the weights in the bias. channels is the number of output
// channels.
func (w *weighted) plan(p *planner, o op, t *operands, act activation, channels int) error {
	outQ, err := p.quantization(o.outputs[0])
	if err != nil {
		return err
	}
	if w.out, err = p.alloc(o.outputs[0]); err != nil {
		return err
	}
	w.in, w.weights = t.values, t.weights
	var ok bool
	if w.lo, w.hi, ok = act.limits(outQ); !ok {
		return fmt.Errorf("activation %d isn't known here", act)
	}
	w.zero = int32(outQ.ZeroPoint)

	f := t.filter
	if n := len(f.scales); n != 1 && n != channels {
		return fmt.Errorf("%d scales for %d channels", n, channels)
	}
	for _, z := range f.zeroPoints {
		if z != 0 {
			return errors.New("a weight's zero point isn't 0")
		}
	}
	w.factors = make([]multiplier, channels)
	for c := range w.factors {
		s := f.scales[min(c, len(f.scales)-1)]
		m := newMultiplier(float64(t.inQ.Scale) * float64(s) / float64(outQ.Scale))
		if !(s > 0) || !m.usable() {
			return fmt.Errorf("channel %d has a scale of %g", c, s)
		}
		w.factors[c] = m
	}

	bias, err := p.constant(o.inputs[2])
	if err != nil {
		return err
	}
	if len(bias) != channels {
		return fmt.Errorf("%d biases for %d channels", len(bias), channels)
	}
	w.bias = make([]int32, channels)
	for c := range bias {
		w.bias[c] = int32(bias[c])
	}
	return nil
}

// fold takes the input's zero point z out of the sum of channel c's weights.
func (w *weighted) fold(z, c int, sum int32) { w.bias[c] -= int32(z) * sum }

// int8 adds the output's zero point and keeps within its limits.
func (w *weighted) int8(x int32) int8 { return int8(min(max(x+w.zero, w.lo), w.hi)) }

// A dense operator is CONV_2D or FULLY_CONNECTED: every output is the product of a stretch of the input with the
// weights of its channel. The windows are as wide as the input, so that each stretch is without gaps.
type dense struct {
	weighted
	eights eights // the weights of each eight channels
	patch  int    // elements of one stretch
	stride int    // from one stretch to the next
	count  int    // of stretches
}

func (p *planner) conv2D(o op) error {
	t, err := p.operands(o)
	if err != nil {
		return err
	}
	if err := t.images(); err != nil {
		return err
	}
	in, f := t.in.shape, t.filter.shape
	strideW, strideH := o.options.int32(1, 0), o.options.int32(2, 0)
	if o.options.int32(4, 1) != 1 || o.options.int32(5, 1) != 1 {
		return errors.New("dilation isn't known here")
	}
	if strideH < 1 || strideW < 1 {
		return t.unknown()
	}
	count := (in[1]-f[1])/strideH + 1
	if o.options.uint8(0) == 0 && count != (in[1]+strideH-1)/strideH {
		return errors.New("padding isn't known here")
	}
	row := in[2] * in[3]
	k := &dense{patch: f[1] * row, stride: strideH * row, count: count}
	return p.dense(k, o, &t, activation(o.options.uint8(3)))
}

func (p *planner) fullyConnected(o op) error {
	t, err := p.operands(o)
	if err != nil {
		return err
	}
	f := t.filter.shape
	if o.options.uint8(1) != 0 || len(f) != 2 || elements(t.in.shape) != f[1] {
		return fmt.Errorf("%v with %v", t.in.shape, f)
	}
	k := &dense{patch: f[1], stride: f[1], count: 1}
	return p.dense(k, o, &t, activation(o.options.uint8(0)))
}

func (p *planner) dense(k *dense, o op, t *operands, act activation) error {
	channels := t.filter.shape[0]
	if err := t.gives(k.count, channels); err != nil {
		return err
	}
	if err := p.products(k.count*channels, k.patch); err != nil {
		return err
	}
	if err := k.plan(p, o, t, act, channels); err != nil {
		return err
	}
	k.eights = newEights(k.weights, k.patch, channels)
	for c := range channels {
		var sum int32
		for _, w := range k.weights[c*k.patch:][:k.patch] {
			sum += int32(w)
		}
		k.fold(t.inQ.ZeroPoint, c, sum)
	}
	p.add(k)
	return nil
}

func (k *dense) run() {
	n, channels := k.patch, len(k.bias)
	for i := range k.count {
		x := k.in[i*k.stride:][:n]
		out := k.out[i*channels:][:channels]
		k.eights.load(x)
		c := 0
		for ; c+8 <= channels; c += 8 {
			sums := k.eights.dot(c)
			out, bias, factors := out[c:][:8], k.bias[c:][:8], k.factors[c:][:8]
			for j, sum := range sums {
				out[j] = k.int8(factors[j].scale(sum + bias[j]))
			}
		}
		for ; c < channels; c++ {
			out[c] = k.result(c, dot(x, k.weights[c*n:][:n]))
		}
	}
}

func (k *dense) result(c int, sum int32) int8 { return k.int8(k.factors[c].scale(sum + k.bias[c])) }

func dot(x, w []int8) (sum int32) {
	w = w[:len(x)]
	for i, v := range x {
		sum += int32(v) * int32(w[i])
	}
	return sum
}

// depthwise is DEPTHWISE_CONV_2D along the first axis: each output channel sees only its own input channel.
type depthwise struct {
	weighted
	taps  int // rows under the window
	count int // of output rows
	sums  []int32
}

func (p *planner) depthwiseConv2D(o op) error {
	t, err := p.operands(o)
	if err != nil {
		return err
	}
	if err := t.images(); err != nil {
		return err
	}
	channels, taps := t.in.shape[3], t.filter.shape[1]
	if t.in.shape[2] != 1 || o.options.int32(1, 0) != 1 || o.options.int32(2, 0) != 1 ||
		o.options.int32(5, 1) != 1 || o.options.int32(6, 1) != 1 {
		return t.unknown()
	}
	if o.options.uint8(0) == 0 && taps != 1 {
		return errors.New("padding isn't known here")
	}
	count := t.in.shape[1] - taps + 1
	if err := t.gives(count, channels); err != nil {
		return err
	}
	k := &depthwise{taps: taps, count: count, sums: make([]int32, channels)}
	if err := p.products(count*channels, taps); err != nil {
		return err
	}
	if err := k.plan(p, o, &t, activation(o.options.uint8(4)), channels); err != nil {
		return err
	}
	for c := range channels {
		var sum int32
		for row := range taps {
			sum += int32(k.weights[row*channels+c])
		}
		k.fold(t.inQ.ZeroPoint, c, sum)
	}
	p.add(k)
	return nil
}

func (k *depthwise) run() {
	channels := len(k.bias)
	for i := range k.count {
		sums := k.sums[:channels]
		copy(sums, k.bias)
		// Row by row, so that input, weights and sums are all walked through in the order they lie in; four rows at once,
		// so that the sums are so less often.
		t := 0
		for ; t+4 <= k.taps; t += 4 {
			x, w := k.in[(i+t)*channels:][:4*channels], k.weights[t*channels:][:4*channels]
			x0, x1, x2, x3 := x[:len(sums)], x[channels:][:len(sums)], x[2*channels:][:len(sums)], x[3*channels:][:len(sums)]
			w0, w1, w2, w3 := w[:len(sums)], w[channels:][:len(sums)], w[2*channels:][:len(sums)], w[3*channels:][:len(sums)]
			for c, sum := range sums {
				sums[c] = sum + int32(x0[c])*int32(w0[c]) + int32(x1[c])*int32(w1[c]) +
					int32(x2[c])*int32(w2[c]) + int32(x3[c])*int32(w3[c])
			}
		}
		for ; t < k.taps; t++ {
			x := k.in[(i+t)*channels:][:len(sums)]
			w := k.weights[t*channels:][:len(sums)]
			for c, sum := range sums {
				sums[c] = sum + int32(x[c])*int32(w[c])
			}
		}
		out := k.out[i*channels:][:channels]
		groups := channels &^ 7
		for c, sum := range sums[:groups] {
			out[c] = k.int8(k.factors[c].scale(sum))
		}
		for c := groups; c < channels; c++ {
			out[c] = k.int8(k.factors[c].scaleAway(sums[c]))
		}
	}
}
