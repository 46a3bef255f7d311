package tflite

import (
	"errors"
	"fmt"
)

// The state of a stream is in variables. The models hold all their handles at the beginning of the graph, read each
// variable once, put the new rows behind the old ones, and keep the last of these rows.

// callOnce takes the initial values of the variables from the graph that it names.
func (p *planner) callOnce(o op) error {
	n := o.options.int32(0, 0)
	if n < 1 || n >= len(p.model.graphs) {
		return fmt.Errorf("graph %d of %d", n, len(p.model.graphs))
	}
	g := &p.model.graphs[n]
	names := make([]string, len(g.tensors))
	for _, o := range g.ops {
		switch {
		case o.code == opVarHandle && len(o.outputs) == 1:
			names[o.outputs[0]] = varName(o)
		case o.code == opAssignVariable && len(o.inputs) == 2 && o.inputs[0] >= 0 && o.inputs[1] >= 0:
			t := &g.tensors[o.inputs[1]]
			if t.typ != Int8 || len(t.data) == 0 || names[o.inputs[0]] == "" {
				return errors.New("a variable isn't set to an int8 constant")
			}
			if p.arena += len(t.data); p.arena > maxArena {
				return fmt.Errorf("more than %d bytes of tensors", maxArena)
			}
			p.in.variables = append(p.in.variables, variable{
				name: names[o.inputs[0]], now: make([]int8, len(t.data)), initial: int8s(t.data),
			})
		default:
			return fmt.Errorf("%v isn't known in a graph that initialises", o.code)
		}
	}
	return nil
}

func varName(o op) string {
	t := o.options.fork()
	return string(t.data(0)) + "/" + string(t.data(1))
}

// readVariable needs no copy if the tensor isn't used any more once the variable is written.
func (p *planner) readVariable(o op) error {
	v, err := p.variable(o.inputs[0])
	if err != nil {
		return err
	}
	if !p.usedAfterAssign(o.inputs[0], o.outputs[0]) {
		_, err := p.put(o.outputs[0], v.now)
		return err
	}
	out, err := p.alloc(o.outputs[0])
	if err != nil {
		return err
	}
	if len(out) != len(v.now) {
		return fmt.Errorf("variable %q has %d elements, not %d", v.name, len(v.now), len(out))
	}
	p.add(&copying{out, v.now})
	return nil
}

// usedAfterAssign tells whether the tensor, or what may be a view of it, may be read after the variable of handle was
// written. It is sure only of the case that occurs: the first operator that uses the tensor is a CONCATENATION,
// nothing else does, and it comes before any write.
func (p *planner) usedAfterAssign(handle, tensor int) bool {
	uses := 0
	for _, o := range p.graph.ops[p.index+1:] {
		if o.code == opAssignVariable && len(o.inputs) == 2 && o.inputs[0] >= 0 && p.names[o.inputs[0]] == p.names[handle] && uses == 0 {
			return true
		}
		for _, i := range o.inputs {
			if i == tensor {
				if uses++; uses > 1 || o.code != opConcatenation {
					return true
				}
			}
		}
	}
	return uses == 0
}

func (p *planner) assignVariable(o op) error {
	v, err := p.variable(o.inputs[0])
	if err != nil {
		return err
	}
	_, in, err := p.value(o.inputs[1])
	if err != nil {
		return err
	}
	if len(in) != len(v.now) {
		return fmt.Errorf("variable %q has %d elements, not %d", v.name, len(v.now), len(in))
	}
	p.add(&copying{v.now, in})
	return nil
}

// copying copies one tensor.
type copying struct{ to, from []int8 }

func (k *copying) run() { copy(k.to, k.from) }
