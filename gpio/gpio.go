// Package gpio is the appliance's body: the LED ring, buttons, a dial and the mute switch, on the pins and the SPI of the
// machine, or on a virtual panel. It tells facts of what is done to it, and shows facts on the ring. What a button leads
// to is done by others: the package calls them.
package gpio

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"periph.io/x/conn/v3/gpio"

	"bellbird/event"
	"bellbird/gpio/led"
	"bellbird/gpio/ring"
)

// Options say what there is, and who wants to know. The zero value is a body without anything.
type Options struct {
	// Board is the hat: see Boards. What is set besides goes before what the board says.
	Board string `toml:"board"`

	Ring    Ring     `toml:"ring"`
	Buttons []Button `toml:"button"`
	Switch  Switch   `toml:"mute_switch"`
	Dial    Dial     `toml:"dial"`
	Night   Night    `toml:"night"`

	Bus  *event.Bus `toml:"-"`
	Mute *Mute      `toml:"-"` // nil: there is nothing to mute
	// Do does what a button was pressed for: each gesture with its action, which may be None. It must not wait. Nil: nothing
	// is done.
	Do func(button string, g event.Gesture, a Action) `toml:"-"`
	// Heard and Spoken are as of ring.Options.
	Heard  func() float64 `toml:"-"`
	Spoken func() float64 `toml:"-"`

	Now  func() time.Time `toml:"-"` // the local time; nil: time.Now
	Host Host             `toml:"-"` // nil: this machine
	// Lights shows the ring's frames instead of LEDs. It must not keep them. Nil: those of Ring do.
	Lights func([]led.Color) error `toml:"-"`
	Logger *slog.Logger            `toml:"-"` // nil: nothing is logged
}

// A Ring says what LEDs there are and where: on SPI, on two pins without SPI, or plain LEDs on pins of their own.
type Ring struct {
	led.Options

	Off bool   `toml:"off"` // leave the LEDs of the board dark
	SPI string `toml:"spi"` // such as "SPI0.0" or "/dev/spidev0.0"

	Data  string `toml:"data"` // pins, for chips with a clock line
	Clock string `toml:"clock"`

	// Pins are those of plain LEDs, which are on or off. With RGB there are three for each: red, green, blue.
	Pins      []string `toml:"pins"`
	RGB       bool     `toml:"rgb"`
	ActiveLow bool     `toml:"active_low"` // they are lit while their pins are low

	// Power is the pin that is high while the ring has power, if it has one.
	Power string `toml:"power"`
}

// A Switch is a slide switch that mutes the microphone.
type Switch struct {
	Pin string `toml:"pin"` // empty: there is none
	// ActiveHigh is set if the pin is high when the switch says mute. Else it then connects the pin to ground.
	ActiveHigh bool `toml:"active_high"`
	// Debounce is as of a Button.
	Debounce time.Duration `toml:"debounce"`
}

// A Body is what is there of it. What is missing or broken does nothing.
type Body struct {
	o      Options
	ring   *ring.Ring
	dimmer *dimmer
	report []Status
	run    []func(context.Context)
	close  []func()
}

// Open looks for the hardware, reads the mute switch, and switches the ring on. That something is missing or broken is no
// error, but is in the report; an error is of the configuration. Who doesn't Run the body must Close it.
func Open(o Options) (*Body, error) {
	o, err := o.Resolve()
	if err != nil {
		return nil, err
	}
	if o.Bus == nil {
		o.Bus = new(event.Bus)
	}
	if o.Do == nil {
		o.Do = func(string, event.Gesture, Action) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Host == nil {
		o.Host = machine{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	b := &Body{o: o}
	b.openSwitch() // first: while it says mute nothing may be heard
	b.openRing()
	b.dimmer = &dimmer{hours: o.Night.Hours, brightness: o.Night.Brightness, now: o.Now, ring: b.ring}
	if b.HasNight() {
		b.run = append(b.run, b.dimmer.run)
	}
	b.openButtons()
	b.openDial()
	return b, nil
}

// Ring is the ring. If there is none it can be told things nevertheless.
func (b *Body) Ring() *ring.Ring { return b.ring }

// Report says of each part whether it is there.
func (b *Body) Report() []Status { return b.report }

// Run keeps the body alive until ctx is done. It can be called once, and closes the body.
func (b *Body) Run(ctx context.Context) error {
	defer b.Close()
	facts := b.o.Bus.Subscribe(256) // one that is dropped is a wrong picture for a moment
	defer facts.Close()
	var parts sync.WaitGroup
	defer parts.Wait()
	parts.Go(func() { _ = ring.NewFacts(b.ring).Run(ctx, facts.C) }) // it has no error
	for _, run := range b.run {
		parts.Go(func() { run(ctx) })
	}
	<-ctx.Done()
	return nil
}

// Close lets go of the hardware. It may be called more than once.
func (b *Body) Close() {
	for i := len(b.close) - 1; i >= 0; i-- {
		b.close[i]()
	}
	b.close = nil
}

// fault returns what is told that a part is broken, or well again.
func (b *Body) fault(part string) func(error) {
	return func(err error) {
		if err == nil {
			b.o.Logger.Info("a part works again", "part", part)
			b.o.Bus.Publish(event.BodyWell{At: time.Now(), Part: part})
			return
		}
		b.notice(part, err.Error())
	}
}

func (b *Body) notice(part, reason string) {
	b.o.Logger.Warn("a part of the body doesn't work", "part", part, "reason", reason)
	b.o.Bus.Publish(event.BodyFault{At: time.Now(), Part: part, Reason: reason})
}

func (b *Body) openButtons() {
	if len(b.o.Buttons) == 0 {
		b.skipped("buttons", "none is configured, and the board has none")
	}
	for _, options := range b.o.Buttons {
		part := "button " + options.Name
		pin, err := b.o.Host.Pin(options.Pin)
		btn := &button{Button: options, tell: b.o.Bus.Publish, do: b.o.Do, notice: b.notice}
		if err == nil {
			err = btn.open(pin, b.fault(part))
		}
		if err != nil {
			b.failed(part, options.Pin, err)
			continue
		}
		btn.Name = options.Name
		b.loaded(part, fmt.Sprintf("on %s: press %s, double %s, triple %s, long %s", options.Pin, options.Press, options.Double, options.Triple, options.Long))
		b.run = append(b.run, btn.run)
	}
}

func (b *Body) openDial() {
	if b.o.Dial == (Dial{}) {
		b.skipped("dial", "none is configured")
		return
	}
	d := &dial{Dial: b.o.Dial, turn: turned(b.o.Bus.Publish)}
	pins := make([]gpio.PinIO, 2)
	var err error
	for i, name := range []string{d.A, d.B} {
		if err == nil {
			pins[i], err = b.o.Host.Pin(name)
		}
	}
	if err == nil {
		err = d.open(pins[0], pins[1], b.fault("dial"))
	}
	if err != nil {
		b.failed("dial", d.A+" and "+d.B, err)
		return
	}
	b.loaded("dial", fmt.Sprintf("on %s and %s", d.A, d.B))
	b.run = append(b.run, d.run)
}

// openSwitch reads the mute switch. One that is configured but can't be read mutes the microphone: nobody knows what it
// says.
func (b *Body) openSwitch() {
	s, mute := b.o.Switch, b.o.Mute
	if s.Pin == "" || mute == nil {
		b.skipped("mute switch", "none is configured")
		return
	}
	slide := func(muted, moved bool) {
		if err := mute.slide(muted, moved); err != nil {
			b.o.Logger.Warn("mute switch", "err", err)
		}
	}
	says := func(high gpio.Level) bool { return bool(high) == s.ActiveHigh }
	pin, err := b.o.Host.Pin(s.Pin)
	var l *line
	var high gpio.Level
	if err == nil {
		l = &line{pin: pin, pull: pullFor(s.ActiveHigh), fault: b.fault("mute switch")}
		high, err = l.open()
	}
	if err != nil {
		slide(true, false)
		b.failed("mute switch", s.Pin, fmt.Errorf("%w; the microphone is muted", err))
		return
	}
	slide(says(high), false)
	v := level{
		line: l, high: high, debounce: s.Debounce,
		moved: func(high gpio.Level, _ time.Time) { slide(says(high), true) },
		lost:  func() { slide(true, false) },
		found: func(high gpio.Level) { slide(says(high), false) },
	}
	b.loaded("mute switch", "on "+s.Pin)
	b.run = append(b.run, v.run)
}
