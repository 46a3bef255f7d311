package gpio

import (
	"context"
	"fmt"
	"sync"
	"time"

	"periph.io/x/conn/v3/gpio"
	"periph.io/x/conn/v3/spi"
)

// panelLEDs is the size of the virtual panel's ring.
const panelLEDs = 12

// The pins of the virtual panel.
const (
	panelButton = "button"
	panelSwitch = "switch"
	panelA      = "dial A"
	panelB      = "dial B"
)

// PanelKeys says which keys of a keyboard do what to the virtual panel.
const PanelKeys = "space presses the button, d twice, t three times, l long, m slides the mute switch, + and - turn the dial"

// A Panel is a virtual body for development: a host whose pins are pressed by the keys of a keyboard. What happens on its
// pins goes the way of what happens on real ones.
type Panel struct {
	pins  map[string]*virtualPin
	muted bool // of the switch; for Run
	phase int  // of the dial; for Run
}

// NewPanel returns a panel on which nothing is pressed.
func NewPanel() *Panel {
	p := &Panel{pins: make(map[string]*virtualPin)}
	for _, name := range []string{panelButton, panelSwitch, panelA, panelB} {
		p.pins[name] = newVirtualPin(name)
	}
	return p
}

// Fit connects a body to the panel, with the actions of its first button.
func (p *Panel) Fit(o Options) Options {
	b := Button{Name: "button", Pin: panelButton}
	if len(o.Buttons) > 0 {
		first := o.Buttons[0]
		b.Press, b.Double, b.Triple, b.Long, b.Single = first.Press, first.Double, first.Triple, first.Long, first.Single
	}
	o.Board, o.Ring, o.Buttons = "none", Ring{}, []Button{b}
	o.Switch, o.Dial = Switch{Pin: panelSwitch}, Dial{A: panelA, B: panelB}
	o.Host = p
	return o
}

// Pin is a Host's.
func (p *Panel) Pin(name string) (gpio.PinIO, error) {
	if pin := p.pins[name]; pin != nil {
		return pin, nil
	}
	return nil, errNoPin
}

// SPI is a Host's. There is none.
func (p *Panel) SPI(string) (spi.PortCloser, error) { return nil, errNoSPI }

// Run does what the keys say until ctx is done or there are no more. Unknown keys do nothing.
func (p *Panel) Run(ctx context.Context, keys <-chan rune) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case k, more := <-keys:
			if !more {
				return nil
			}
			p.key(ctx, k)
		}
	}
}

const (
	tap      = 100 * time.Millisecond // how long a key presses the button
	longTap  = 1300 * time.Millisecond
	between  = 120 * time.Millisecond
	turnPace = 5 * time.Millisecond // between two changes of the dial's contacts
)

func (p *Panel) key(ctx context.Context, k rune) {
	switch k {
	case ' ':
		p.press(ctx, tap)
	case 'd', 't':
		for range map[rune]int{'d': 2, 't': 3}[k] {
			p.press(ctx, tap)
			rest(ctx, between)
		}
	case 'l':
		p.press(ctx, longTap)
	case 'm':
		p.muted = !p.muted
		p.pins[panelSwitch].set(gpio.Level(!p.muted))
	case '+', '=':
		p.turn(ctx, 1)
	case '-':
		p.turn(ctx, 3) // three quarters forward are one back
	}
}

func (p *Panel) press(ctx context.Context, d time.Duration) {
	pin := p.pins[panelButton]
	pin.set(gpio.Low)
	rest(ctx, d)
	pin.set(gpio.High)
}

// turn turns the dial by one detent, which is all four phases of its contacts.
func (p *Panel) turn(ctx context.Context, by int) {
	phases := [4][2]gpio.Level{{gpio.High, gpio.High}, {gpio.High, gpio.Low}, {gpio.Low, gpio.Low}, {gpio.Low, gpio.High}}
	for range 4 {
		p.phase = (p.phase + by) % 4
		p.pins[panelA].set(phases[p.phase][0])
		p.pins[panelB].set(phases[p.phase][1])
		rest(ctx, turnPace)
	}
}

func rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// A virtualPin is an input whose level is set by the panel. Its edges behave as those of the kernel: some are kept until
// somebody waits for them, and more than that are lost.
type virtualPin struct {
	gpio.PinIO // what is not below is refused
	name       string
	edges      chan struct{}

	mu    sync.Mutex
	level gpio.Level
}

func newVirtualPin(name string) *virtualPin {
	return &virtualPin{PinIO: gpio.INVALID, name: name, edges: make(chan struct{}, 16), level: gpio.High}
}

func (p *virtualPin) set(l gpio.Level) {
	p.mu.Lock()
	changed := p.level != l
	p.level = l
	p.mu.Unlock()
	if changed {
		select {
		case p.edges <- struct{}{}:
		default:
		}
	}
}

func (p *virtualPin) String() string                { return fmt.Sprintf("virtual pin %q", p.name) }
func (p *virtualPin) Name() string                  { return p.name }
func (p *virtualPin) Halt() error                   { return nil }
func (p *virtualPin) In(gpio.Pull, gpio.Edge) error { return nil }
func (p *virtualPin) WaitForEdge(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-p.edges:
		return true
	case <-t.C:
		return false
	}
}

func (p *virtualPin) Read() gpio.Level {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.level
}
