package tflite

import "errors"

// Operators on each element by itself.

// rescaled is an operator's input, and what its elements and those of the output stand for.
func (p *planner) rescaled(o op) (in []int8, inQ, outQ Quantization, err error) {
	if _, in, inQ, err = p.quantized(o.inputs[0]); err == nil {
		outQ, err = p.quantization(o.outputs[0])
	}
	return in, inQ, outQ, err
}

func (p *planner) logistic(o op) error {
	in, inQ, outQ, err := p.rescaled(o)
	if err != nil {
		return err
	}
	out, err := p.alloc(o.outputs[0])
	if err != nil {
		return err
	}
	if len(in) != len(out) {
		return errors.New("its output has another size")
	}
	p.add(&lookup{out, in, logisticTable(inQ, outQ)})
	return nil
}

// lookup has a result for each possible element.
type lookup struct {
	to, from []int8
	table    [256]int8
}

func (k *lookup) run() {
	for i, x := range k.from {
		k.to[i] = k.table[int(x)+128]
	}
}

// quantize turns int8 into uint8 of another scale and zero point: the model's output.
func (p *planner) quantize(o op) error {
	in, inQ, outQ, err := p.rescaled(o)
	if err != nil {
		return err
	}
	out := &p.graph.tensors[o.outputs[0]]
	if out.typ != UInt8 || len(out.data) != 0 || p.bytes != nil || o.outputs[0] != p.graph.outputs[0] || elements(out.shape) != len(in) {
		return errors.New("its output isn't the model's output, in uint8")
	}
	m := newMultiplier(float64(inQ.Scale) / float64(outQ.Scale))
	if !m.usable() {
		return errors.New("its scales are too far apart")
	}
	p.bytes = make([]byte, len(in))
	k := &requantize{to: p.bytes, from: in}
	for i := range k.table {
		x := m.scale(int32(i-128-inQ.ZeroPoint)) + int32(outQ.ZeroPoint)
		k.table[i] = uint8(min(max(x, 0), 255))
	}
	p.add(k)
	return nil
}

type requantize struct {
	to    []byte
	from  []int8
	table [256]uint8
}

func (k *requantize) run() {
	for i, x := range k.from {
		k.to[i] = k.table[int(x)+128]
	}
}
