package wake

import (
	"fmt"
	"math"
	"slices"

	"bellbird/wake/tflite"
)

// deafSlices is for how long after a reset a detector isn't believed: its variables are not yet filled with sound, and
// the frontend is still getting used to the room.
const deafSlices = 100

// A Detector listens for one word. It is for one goroutine at a time.
type Detector struct {
	model  *Model
	cutoff float64
	net    *tflite.Interpreter
	table  [1024]int8 // from feature to the network's input

	filled  int // elements of the input
	slices  int // since the reset, until it is believed
	recent  []uint8
	next    int
	sum     int
	outputs int // since the reset, until the window is full
}

// NewDetector returns one that hears the model's word when the mean probability is above the cutoff; 0 means the
// model's own.
func NewDetector(m *Model, cutoff float64) (*Detector, error) {
	if m.IsOpenWakeWord() {
		return nil, fmt.Errorf("model %q: its input is float32: it is openWakeWord's, and here one of microWakeWord's is needed", m.Name)
	}
	net, err := m.net.NewInterpreter()
	if err != nil {
		return nil, fmt.Errorf("model %q: %w", m.Name, err)
	}
	in, out := net.InputShape(), net.OutputShape()
	if len(in) != 3 || in[0] != 1 || in[2] != Channels {
		return nil, fmt.Errorf("model %q: its input is %v, not [1 n %d]: it isn't a streaming microWakeWord model", m.Name, in, Channels)
	}
	if !slices.Equal(out, []int{1, 1}) {
		return nil, fmt.Errorf("model %q: its output is %v, not [1 1]", m.Name, out)
	}
	if cutoff == 0 {
		cutoff = m.Cutoff
	}
	d := &Detector{model: m, cutoff: cutoff, net: net, recent: make([]uint8, m.Window)}
	q := net.InputQuantization()
	for f := range d.table {
		// A feature's unit is 1/25.6 of the network's, as it was trained.
		x := math.RoundToEven(float64(float64(f)*0.0390625/float64(q.Scale)) + float64(q.ZeroPoint))
		d.table[f] = int8(min(max(x, math.MinInt8), math.MaxInt8))
	}
	return d, nil
}

// Reset makes the detector forget what it has heard.
func (d *Detector) Reset() {
	d.net.Reset()
	clear(d.recent)
	d.filled, d.slices, d.next, d.sum, d.outputs = 0, 0, 0, 0, 0
}

// Write takes the next slice of features. When it completed a step of the network, ran is true, and Score and Heard
// have news.
func (d *Detector) Write(f *Features) (ran bool) {
	in := d.net.Input()
	for i, x := range f {
		in[d.filled+i] = d.table[min(int(x), len(d.table)-1)]
	}
	d.slices = min(d.slices+1, deafSlices)
	if d.filled += Channels; d.filled < len(in) {
		return false
	}
	d.filled = 0
	d.net.Invoke()
	p := d.net.Output()[0]
	d.sum += int(p) - int(d.recent[d.next])
	d.recent[d.next] = p
	d.next = (d.next + 1) % len(d.recent)
	d.outputs = min(d.outputs+1, len(d.recent))
	return true
}

// Raw is the network's last output as it is, 0 to 255.
func (d *Detector) Raw() uint8 { return d.recent[(d.next+len(d.recent)-1)%len(d.recent)] }

// Score is the mean of the last probabilities, 0 to 1.
func (d *Detector) Score() float64 {
	q := d.net.OutputQuantization()
	n := len(d.recent)
	return float64(q.Scale) * float64(d.sum-n*q.ZeroPoint) / float64(n)
}

// Heard tells whether the word has been said just now.
func (d *Detector) Heard() bool { return d.ready() && d.Score() > d.cutoff }

// ready tells whether the score means anything yet.
func (d *Detector) ready() bool { return d.slices >= deafSlices && d.outputs == len(d.recent) }

// Model is the model that the detector uses.
func (d *Detector) Model() *Model { return d.model }
