package tflite

import (
	"errors"
	"fmt"
	"slices"
)

// Float operators that multiply, or look at windows. All the products are one kernel's: stretches of the input, which
// lie anywhere, with the weights of eight output channels at a time, which are sorted for it beforehand.

const (
	lanes = 8 // output channels done together
	spots = 4 // stretches done together
)

// A window keeps the last rows of a stream for an operator that will look at them again, and puts zeros beside each
// row. Rows keep their order: the kept ones, then the fresh ones.
type window struct {
	buf, initial []float32
	from         []float32 // the fresh rows
	size, step   int       // of a row there, and from row to row in buf
	left         int       // zeros before a row
	keep         int       // rows
}

func (k *window) run() {
	copy(k.buf, k.buf[len(k.buf)-k.keep*k.step:])
	to := k.buf[k.keep*k.step:]
	for i := 0; i*k.size < len(k.from); i++ {
		copy(to[i*k.step+k.left:], k.from[i*k.size:][:k.size])
	}
}

// A frame is the geometry of an operator that looks at kh × kw places of its input, sh × sw apart.
type frame struct {
	v              []float32
	width, depth   int // of the input, zeros included
	outH, outW     int
	kh, kw, sh, sw int
}

// look makes the frame for input i, with the zeros and the kept rows that it needs.
func (p *floatPlanner) look(i int, f frame, same bool) (frame, error) {
	v, shape, err := p.value(i)
	if err != nil {
		return f, err
	}
	if len(shape) != 4 || shape[0] != 1 || f.kh < 1 || f.kw < 1 || f.sh < 1 || f.sw < 1 {
		return f, fmt.Errorf("a window of %d×%d, %d×%d apart, on %v isn't known here", f.kh, f.kw, f.sh, f.sw, shape)
	}
	rows, left, right, keep := shape[1], 0, 0, 0
	if same {
		total := func(n, k, s int) int { return max((n-1)/s*s+k-n, 0) }
		all := rows
		if full := p.graph.tensors[i].shape; p.fresh && len(full) == 4 {
			all = full[1]
		}
		if total(all, f.kh, f.sh) != 0 || (p.fresh && f.kh != 1 && f.kh != f.sh) {
			return f, errors.New("padding along the rows isn't known here")
		}
		n := total(shape[2], f.kw, f.sw)
		left, right = n/2, n-n/2
	}
	if p.fresh {
		if keep = f.kh - f.sh; keep < 0 || rows%f.sh != 0 {
			return f, fmt.Errorf("%d fresh rows can't be done %d by %d", rows, f.kh, f.sh)
		}
	}
	f.v, f.width, f.depth = v, shape[2]+left+right, shape[3]
	if f.width < f.kw || rows+keep < f.kh || f.width > maxElements || keep > maxElements {
		return f, fmt.Errorf("a window of %d×%d on %v isn't known here", f.kh, f.kw, shape)
	}
	f.outH, f.outW = (rows+keep-f.kh)/f.sh+1, (f.width-f.kw)/f.sw+1
	if keep == 0 && f.width == shape[2] {
		return f, nil
	}
	row := f.width * f.depth
	if row > maxElements || (rows+keep) > maxElements/row {
		return f, fmt.Errorf("a window of more than %d elements", maxElements)
	}
	if err := p.arena(2 * (rows + keep) * row); err != nil {
		return f, err
	}
	k := &window{
		buf: make([]float32, (rows+keep)*row), from: v,
		size: shape[2] * f.depth, step: row, left: left * f.depth, keep: keep,
	}
	p.add(k)
	if keep > 0 {
		p.in.windows = append(p.in.windows, k)
	}
	f.v = k.buf
	return f, nil
}

func (p *floatPlanner) floatConv2D(o op) error {
	w, shape, err := p.weights(o.inputs[1])
	if err != nil {
		return err
	}
	if len(shape) != 4 {
		return fmt.Errorf("weights of %v", shape)
	}
	if o.options.int32(4, 1) != 1 || o.options.int32(5, 1) != 1 {
		return errors.New("dilation isn't known here")
	}
	f := frame{kh: shape[1], kw: shape[2], sw: o.options.int32(1, 0), sh: o.options.int32(2, 0)}
	if f, err = p.look(o.inputs[0], f, o.options.uint8(0) == 0); err != nil {
		return err
	}
	if f.depth != shape[3] {
		return fmt.Errorf("weights of %v for a depth of %d", shape, f.depth)
	}
	channels := shape[0]
	bias, err := p.bias(o, channels)
	if err != nil {
		return err
	}
	to, err := p.alloc(o.outputs[0], []int{1, f.outH, f.outW, channels})
	if err != nil {
		return err
	}
	k := &products{to: to, from: f.v, size: f.kw * f.depth, step: f.width * f.depth, stretches: f.kh, channels: channels}
	if k.size == k.step {
		k.size, k.step, k.stretches = k.size*k.stretches, 0, 1
	}
	for y := range f.outH {
		for x := range f.outW {
			k.at = append(k.at, int32((y*f.sh*f.width+x*f.sw)*f.depth))
		}
	}
	n := k.size * k.stretches
	if err := p.products(k, bias, func(c, i int) float32 { return w[c*n+i] }); err != nil {
		return err
	}
	return p.activate(to, activation(o.options.uint8(3)))
}

// factors are the tensors of an operator that multiplies: an input, and weights, which are fixed.
func (p *floatPlanner) factors(o op) (v []float32, shape []int, w []float32, wShape []int, err error) {
	if v, shape, err = p.value(o.inputs[0]); err == nil {
		w, wShape, err = p.weights(o.inputs[1])
	}
	return v, shape, w, wShape, err
}

// bias is that of o, or zero.
func (p *floatPlanner) bias(o op, channels int) ([]float32, error) {
	if len(o.inputs) < 3 || o.inputs[2] < 0 {
		return make([]float32, channels), nil
	}
	b, _, err := p.weights(o.inputs[2])
	if err == nil && len(b) != channels {
		err = fmt.Errorf("%d biases for %d channels", len(b), channels)
	}
	return b, err
}

func (p *floatPlanner) batchMatMul(o op) error {
	a, shape, w, wShape, err := p.factors(o)
	if err != nil {
		return err
	}
	if len(shape) < 2 || len(wShape) != 2 || o.options.bool(0) || o.options.bool(1) || shape[len(shape)-1] != wShape[0] {
		return fmt.Errorf("%v with %v isn't known here", shape, wShape)
	}
	n, channels := wShape[0], wShape[1]
	out := append(slices.Clone(shape[:len(shape)-1]), channels)
	to, err := p.alloc(o.outputs[0], out)
	if err != nil {
		return err
	}
	k := &products{to: to, from: a, size: n, stretches: 1, channels: channels}
	for at := 0; at < len(a); at += n {
		k.at = append(k.at, int32(at))
	}
	return p.products(k, make([]float32, channels), func(c, i int) float32 { return w[i*channels+c] })
}

// products is an operator whose outputs are the products of some stretches of the input with the weights of a channel.
type products struct {
	to, from   []float32
	at         []int32 // where the first stretch of each spot begins
	size, step int     // of a stretch, and from one to the next
	stretches  int
	channels   int
	weights    []float32 // of each eight channels: of each element of the stretches: eight
	bias       []float32 // filled up to eights
}

// products sorts the weights and adds the kernel.
func (p *floatPlanner) products(k *products, bias []float32, weight func(channel, i int) float32) error {
	n, groups := k.size*k.stretches, (k.channels+lanes-1)/lanes
	if err := p.work(len(k.at)*k.channels, n); err != nil {
		return err
	}
	if err := p.arena(groups*lanes*(n+1) + len(k.at)); err != nil {
		return err
	}
	// Weights at either end that are zero in all channels are left out: a window in a Fourier transform has such.
	nothing := func(i int) bool {
		for c := range k.channels {
			if weight(c, i) != 0 {
				return false
			}
		}
		return true
	}
	first := 0
	if k.stretches == 1 {
		for n > 1 && nothing(first+n-1) {
			n--
		}
		for n > 1 && nothing(first) {
			first, n = first+1, n-1
		}
		k.size = n
		for i := range k.at {
			k.at[i] += int32(first)
		}
	}
	k.bias = make([]float32, groups*lanes)
	copy(k.bias, bias)
	k.weights = make([]float32, groups*lanes*n)
	for c := range k.channels {
		to := k.weights[c/lanes*lanes*n+c%lanes:]
		for i := range n {
			to[i*lanes] = weight(c, first+i)
		}
	}
	p.add(k)
	return nil
}

func (k *products) run() {
	n := k.size * k.stretches
	var sums [spots * lanes]float32
	for c := 0; c < k.channels; c += lanes {
		weights := k.weights[c*n:][:lanes*n]
		bias := k.bias[c:][:lanes]
		channels := min(lanes, k.channels-c)
		for i := 0; i < len(k.at); i += spots {
			for s := range spots {
				copy(sums[s*lanes:], bias)
			}
			last := len(k.at) - 1 // done again if there is no fourth
			x0, x1, x2, x3 := int(k.at[i]), int(k.at[min(i+1, last)]), int(k.at[min(i+2, last)]), int(k.at[min(i+3, last)])
			for s := range k.stretches {
				d := s * k.step
				multiply(&sums, k.from[x0+d:][:k.size], k.from[x1+d:][:k.size], k.from[x2+d:][:k.size], k.from[x3+d:][:k.size],
					weights[s*k.size*lanes:][:k.size*lanes])
			}
			for s := range min(spots, len(k.at)-i) {
				copy(k.to[(i+s)*k.channels+c:][:channels], sums[s*lanes:])
			}
		}
	}
}

// floatFullyConnected is a product with one stretch only, for which the other kernel is no good.
func (p *floatPlanner) floatFullyConnected(o op) error {
	v, _, w, shape, err := p.factors(o)
	if err != nil {
		return err
	}
	if o.options.uint8(1) != 0 || o.options.bool(2) || len(shape) != 2 || len(v) != shape[1] {
		return fmt.Errorf("%d elements with %v", len(v), shape)
	}
	bias, err := p.bias(o, shape[0])
	if err != nil {
		return err
	}
	if err := p.work(shape[0], shape[1]); err != nil {
		return err
	}
	to, err := p.alloc(o.outputs[0], []int{1, shape[0]})
	if err != nil {
		return err
	}
	p.add(&connected{to, v, w, bias})
	return p.activate(to, activation(o.options.uint8(0)))
}

type connected struct{ to, from, weights, bias []float32 }

func (k *connected) run() {
	n := len(k.from)
	c := 0
	for ; c+4 <= len(k.to); c += 4 {
		w := k.weights[c*n:][:4*n]
		w0, w1, w2, w3 := w[:n], w[n:][:n], w[2*n:][:n], w[3*n:][:n]
		s0, s1, s2, s3 := k.bias[c], k.bias[c+1], k.bias[c+2], k.bias[c+3]
		for i, x := range k.from {
			s0 += x * w0[i]
			s1 += x * w1[i]
			s2 += x * w2[i]
			s3 += x * w3[i]
		}
		k.to[c], k.to[c+1], k.to[c+2], k.to[c+3] = s0, s1, s2, s3
	}
	for ; c < len(k.to); c++ {
		s, w := k.bias[c], k.weights[c*n:][:n]
		for i, x := range k.from {
			s += x * w[i]
		}
		k.to[c] = s
	}
}

func (p *floatPlanner) maxPool2D(o op) error {
	f := frame{
		sw: o.options.int32(1, 0), sh: o.options.int32(2, 0),
		kw: o.options.int32(3, 0), kh: o.options.int32(4, 0),
	}
	same := o.options.uint8(0) == 0
	_, shape, err := p.value(o.inputs[0])
	if err != nil {
		return err
	}
	// Zeros beside the rows would be wrong here: they could be the maximum.
	if same && (len(shape) != 4 || f.sw != f.kw || f.sw < 1 || shape[2]%f.sw != 0) {
		return errors.New("padding isn't known here")
	}
	if f, err = p.look(o.inputs[0], f, same); err != nil {
		return err
	}
	to, err := p.alloc(o.outputs[0], []int{1, f.outH, f.outW, f.depth})
	if err != nil {
		return err
	}
	if err := p.work(len(to), f.kh*f.kw); err != nil {
		return err
	}
	p.add(&pool{to, f})
	return p.activate(to, activation(o.options.uint8(5)))
}

type pool struct {
	to []float32
	frame
}

func (k *pool) run() {
	to := k.to
	for y := range k.outH {
		for x := range k.outW {
			out := to[:k.depth]
			to = to[k.depth:]
			for i := range k.kh {
				for j := range k.kw {
					in := k.v[((y*k.sh+i)*k.width+x*k.sw+j)*k.depth:][:k.depth]
					if i == 0 && j == 0 {
						copy(out, in)
						continue
					}
					for c, v := range in {
						if v > out[c] {
							out[c] = v
						}
					}
				}
			}
		}
	}
}
