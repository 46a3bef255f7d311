package gpio

import (
	"context"
	"fmt"
	"sync"
	"time"

	"periph.io/x/conn/v3/gpio"

	"bellbird/event"
)

// A Dial is a rotary encoder with two contacts. Its push button, if it has one, is a Button.
type Dial struct {
	A string `toml:"a"` // pins; each contact connects its pin to ground
	B string `toml:"b"`
	// Steps is how many changes there are from one detent to the next: 1, 2 or 4; default 4.
	Steps int `toml:"steps"`
	// Reverse is set if it turns the wrong way.
	Reverse bool `toml:"reverse"`
}

// quadrature has for each pair of states of the contacts, before and after, which way the dial was turned. A contact that
// bounces goes there and back, which is nothing in the end; a change of both at once was missed, and is nothing either.
var quadrature = [16]int{
	0b00_01: +1, 0b01_11: +1, 0b11_10: +1, 0b10_00: +1,
	0b01_00: -1, 0b11_01: -1, 0b10_11: -1, 0b00_10: -1,
}

// A dial is one that is there.
type dial struct {
	Dial
	a, b *line
	turn func(detents int)

	mu    sync.Mutex // two lines, a goroutine each
	state int
	sum   int
}

func (d *dial) check() error {
	if d.Steps == 0 {
		d.Steps = 4
	}
	if d.Steps != 1 && d.Steps != 2 && d.Steps != 4 {
		return fmt.Errorf("dial: steps %d: there are 1, 2 or 4 changes to a detent", d.Steps)
	}
	if d.A == "" || d.B == "" || d.A == d.B {
		return fmt.Errorf("dial: pins %q and %q: it has two, a and b", d.A, d.B)
	}
	return nil
}

func (d *dial) open(a, b gpio.PinIO, fault func(error)) error {
	d.a = &line{pin: a, pull: gpio.PullUp, fault: fault}
	d.b = &line{pin: b, pull: gpio.PullUp, fault: fault}
	for _, l := range []*line{d.a, d.b} {
		if _, err := l.open(); err != nil {
			return err
		}
	}
	d.state = d.read()
	return nil
}

func (d *dial) read() int {
	state := 0
	if d.a.pin.Read() {
		state |= 2
	}
	if d.b.pin.Read() {
		state |= 1
	}
	return state
}

// follow reads both contacts whenever one of them changes.
func (d *dial) follow(ctx context.Context, l *line) {
	defer l.pin.Halt()
	for {
		switch l.wait(ctx, poll) {
		case over:
			return
		case edge, back:
			d.step()
		}
	}
}

func (d *dial) step() {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.read()
	d.sum += quadrature[d.state<<2|now]
	d.state = now
	detents := d.sum / d.Steps
	if detents == 0 {
		return
	}
	d.sum -= detents * d.Steps
	if d.Reverse {
		detents = -detents
	}
	d.turn(detents)
}

func (d *dial) run(ctx context.Context) {
	var both sync.WaitGroup
	both.Go(func() { d.follow(ctx, d.a) })
	d.follow(ctx, d.b)
	both.Wait()
}

// turned tells facts of the dial.
func turned(tell func(event.Fact)) func(int) {
	return func(detents int) { tell(event.DialTurned{At: time.Now(), Steps: detents}) }
}
