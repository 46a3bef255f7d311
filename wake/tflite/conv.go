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

// plan checks the tensors and fills in all but weights and bias. channels is the number of output channels.
func (w *weighted) plan(p *planner, o op, act activation, channels int) error {
	_, in, inQ, err := p.quantized(o.inputs[0])
	if err != nil {
		return err
	}
	outQ, err := p.quantization(o.outputs[0])
	if err != nil {
		return err
	}
	if w.out, err = p.alloc(o.outputs[0]); err != nil {
		return err
	}
	w.in = in
	var ok bool
	if w.lo, w.hi, ok = act.limits(outQ); !ok {
		return fmt.Errorf("activation %d isn't known here", act)
	}
	w.zero = int32(outQ.ZeroPoint)

	f := &p.graph.tensors[o.inputs[1]]
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
		m := newMultiplier(float64(inQ.Scale) * float64(s) / float64(outQ.Scale))
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
	in, _, inQ, err := p.quantized(o.inputs[0])
	if err != nil {
		return err
	}
	f, weights, err := p.value(o.inputs[1])
	if err != nil {
		return err
	}
	out := &p.graph.tensors[o.outputs[0]]
	if len(in.shape) != 4 || len(f.shape) != 4 || len(out.shape) != 4 || in.shape[3] != f.shape[3] {
		return fmt.Errorf("%v with %v gives no %v", in.shape, f.shape, out.shape)
	}
	strideW, strideH := o.options.int32(1, 0), o.options.int32(2, 0)
	if o.options.int32(4, 1) != 1 || o.options.int32(5, 1) != 1 {
		return errors.New("dilation isn't known here")
	}
	if in.shape[0] != 1 || in.shape[2] != f.shape[2] || in.shape[1] < f.shape[1] || strideH < 1 || strideW < 1 {
		return fmt.Errorf("a window of %v on %v isn't known here", f.shape, in.shape)
	}
	count := (in.shape[1]-f.shape[1])/strideH + 1
	if o.options.uint8(0) == 0 && count != (in.shape[1]+strideH-1)/strideH {
		return errors.New("padding isn't known here")
	}
	channels := f.shape[0]
	if elements(out.shape) != count*channels || out.shape[3] != channels {
		return fmt.Errorf("it gives no %v", out.shape)
	}
	row := in.shape[2] * in.shape[3]
	k := &dense{patch: f.shape[1] * row, stride: strideH * row, count: count}
	return p.dense(k, o, activation(o.options.uint8(3)), weights, channels, inQ)
}

func (p *planner) fullyConnected(o op) error {
	in, _, inQ, err := p.quantized(o.inputs[0])
	if err != nil {
		return err
	}
	f, weights, err := p.value(o.inputs[1])
	if err != nil {
		return err
	}
	if o.options.uint8(1) != 0 || len(f.shape) != 2 || elements(in.shape) != f.shape[1] {
		return fmt.Errorf("%v with %v", in.shape, f.shape)
	}
	if out := p.graph.tensors[o.outputs[0]].shape; elements(out) != f.shape[0] {
		return fmt.Errorf("it gives no %v", out)
	}
	k := &dense{patch: f.shape[1], stride: f.shape[1], count: 1}
	return p.dense(k, o, activation(o.options.uint8(0)), weights, f.shape[0], inQ)
}

func (p *planner) dense(k *dense, o op, act activation, weights []int8, channels int, inQ Quantization) error {
	if err := p.products(k.count*channels, k.patch); err != nil {
		return err
	}
	if err := k.plan(p, o, act, channels); err != nil {
		return err
	}
	k.weights = weights
	k.eights = newEights(weights, k.patch, channels)
	for c := range channels {
		var sum int32
		for _, w := range weights[c*k.patch:][:k.patch] {
			sum += int32(w)
		}
		k.fold(inQ.ZeroPoint, c, sum)
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
	in, _, inQ, err := p.quantized(o.inputs[0])
	if err != nil {
		return err
	}
	f, weights, err := p.value(o.inputs[1])
	if err != nil {
		return err
	}
	out := &p.graph.tensors[o.outputs[0]]
	if len(in.shape) != 4 || len(f.shape) != 4 || len(out.shape) != 4 {
		return fmt.Errorf("%v with %v gives no %v", in.shape, f.shape, out.shape)
	}
	channels, taps := in.shape[3], f.shape[1]
	if in.shape[0] != 1 || in.shape[2] != 1 || f.shape[2] != 1 || f.shape[3] != channels || in.shape[1] < taps ||
		o.options.int32(1, 0) != 1 || o.options.int32(2, 0) != 1 ||
		o.options.int32(5, 1) != 1 || o.options.int32(6, 1) != 1 {
		return fmt.Errorf("a window of %v on %v isn't known here", f.shape, in.shape)
	}
	if o.options.uint8(0) == 0 && taps != 1 {
		return errors.New("padding isn't known here")
	}
	count := in.shape[1] - taps + 1
	if elements(out.shape) != count*channels || out.shape[3] != channels {
		return fmt.Errorf("it gives no %v", out.shape)
	}
	k := &depthwise{taps: taps, count: count, sums: make([]int32, channels)}
	if err := p.products(count*channels, taps); err != nil {
		return err
	}
	if err := k.plan(p, o, activation(o.options.uint8(4)), channels); err != nil {
		return err
	}
	k.weights = weights
	for c := range channels {
		var sum int32
		for t := range taps {
			sum += int32(weights[t*channels+c])
		}
		k.fold(inQ.ZeroPoint, c, sum)
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
