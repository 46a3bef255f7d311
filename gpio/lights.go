package gpio

import (
	"context"
	"fmt"

	"periph.io/x/conn/v3"
	"periph.io/x/conn/v3/gpio"
	"periph.io/x/conn/v3/spi"

	"bellbird/gpio/led"
	"bellbird/gpio/ring"
)

// openRing opens the LEDs, or else has a ring that nobody sees.
func (b *Body) openRing() {
	r := &b.o.Ring
	options := ring.Options{Count: max(r.Count, 1), Heard: b.o.Heard, Spoken: b.o.Spoken, OnFault: b.fault("ring")}
	options.Send = func([]led.Color) error { return nil }
	defer func() {
		b.ring = ring.New(options)
		if mute := b.o.Mute; mute != nil {
			mute.showOn(b.ring.SetMuted)
		}
	}()
	if b.o.Lights != nil {
		options.Count, options.Send = panelLEDs, b.o.Lights
		b.animate("the virtual panel", panelLEDs)
		return
	}
	if !r.there() {
		b.skipped("ring", "none is configured, and the board has none")
		return
	}
	send, where, err := b.lights(r)
	if err != nil {
		b.failed("ring", where, err)
		return
	}
	options.Send = send
	b.animate(where, r.Count)
}

// animate has the ring run.
func (b *Body) animate(where string, count int) {
	b.loaded("ring", fmt.Sprintf("%d LEDs on %s", count, where))
	b.run = append(b.run, func(ctx context.Context) {
		if err := b.ring.Run(ctx); err != nil {
			b.o.Logger.Warn("the ring can't be left dark", "err", err)
		}
	})
}

// lights opens what r says, and returns what shows a frame.
func (b *Body) lights(r *Ring) (send func([]led.Color) error, where string, err error) {
	if r.Power != "" {
		pin, err := b.o.Host.Pin(r.Power)
		if err == nil {
			err = pin.Out(gpio.High)
		}
		if err != nil {
			return nil, "power pin " + r.Power, err
		}
		b.close = append(b.close, func() { _ = pin.Out(gpio.Low) }) // nobody sees the difference
	}
	if len(r.Pins) > 0 {
		send, err = b.plain(r)
		return send, fmt.Sprintf("pins %v", r.Pins), err
	}
	strip, err := led.New(r.Options)
	if err != nil {
		return nil, "the configuration", err
	}
	c, where, err := b.wire(r, strip)
	if err != nil {
		return nil, where, err
	}
	return func(frame []led.Color) error {
		bytes, err := strip.Encode(frame)
		if err != nil {
			return err
		}
		return c.Tx(bytes, nil)
	}, where, nil
}

// wire opens where the bytes of a strip go.
func (b *Body) wire(r *Ring, strip *led.Strip) (c conn.Conn, where string, err error) {
	if r.SPI == "" {
		where = r.Data + " and " + r.Clock
		data, err := b.o.Host.Pin(r.Data)
		if err != nil {
			return nil, where, err
		}
		clock, err := b.o.Host.Pin(r.Clock)
		if err != nil {
			return nil, where, err
		}
		// The first bits also find out whether the pins can be used.
		w := &twoWires{data: data, clock: clock}
		return w, where, w.Tx([]byte{0}, nil)
	}
	port, err := b.o.Host.SPI(r.SPI)
	if err != nil {
		return nil, r.SPI, err
	}
	b.close = append(b.close, func() { _ = port.Close() }) // there is nothing to be lost
	c, err = port.Connect(strip.Clock(), spi.Mode0, 8)
	return c, r.SPI, err
}

// twoWires sends bytes over two pins, as SPI does, for boards whose LEDs are on pins that can't do SPI. It is slow, some
// microseconds for each bit, and the LEDs don't care.
type twoWires struct{ data, clock gpio.PinOut }

func (w *twoWires) String() string      { return w.data.Name() + " and " + w.clock.Name() }
func (w *twoWires) Duplex() conn.Duplex { return conn.Half }

// Tx sends out, most significant bits first. Nothing can be read.
func (w *twoWires) Tx(out, _ []byte) error {
	for _, v := range out {
		for bit := 7; bit >= 0; bit-- {
			if err := w.data.Out(v>>bit&1 == 1); err != nil {
				return err
			}
			if err := w.clock.Out(gpio.High); err != nil {
				return err
			}
			if err := w.clock.Out(gpio.Low); err != nil {
				return err
			}
		}
	}
	return nil
}

// half is from where on a plain LED is lit.
const half = 60

// plain shows a frame on LEDs that are on or off.
func (b *Body) plain(r *Ring) (func([]led.Color) error, error) {
	pins := make([]gpio.PinIO, len(r.Pins))
	for i, name := range r.Pins {
		p, err := b.o.Host.Pin(name)
		if err == nil {
			err = p.Out(gpio.Level(r.ActiveLow))
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		pins[i] = p
	}
	return func(frame []led.Color) error {
		for i, p := range pins {
			var v uint8
			if c := frame[i*len(frame)/len(pins)]; r.RGB {
				v = [3]uint8{c.R, c.G, c.B}[i%3]
			} else {
				v = max(c.R, c.G, c.B)
			}
			if err := p.Out(gpio.Level(v >= half != r.ActiveLow)); err != nil {
				return err
			}
		}
		return nil
	}, nil
}
