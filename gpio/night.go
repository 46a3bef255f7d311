package gpio

import (
	"context"
	"fmt"
	"sync"
	"time"

	"bellbird/clock"
	"bellbird/gpio/ring"
)

// Night is when the ring is dimmed.
type Night struct {
	Hours clock.Hours `toml:"hours"` // such as "22:00-07:00", by the local time; empty: never
	// Brightness is the share of its light that the ring keeps then, above 0 and up to 1; default ring.Night.
	Brightness float64 `toml:"brightness"`
}

func (n *Night) check() error {
	if n.Brightness == 0 {
		n.Brightness = ring.Night
	}
	if n.Brightness < 0 || n.Brightness > 1 {
		return fmt.Errorf("night: brightness = %v: it is above 0 and up to 1", n.Brightness)
	}
	return nil
}

// A dimmer dims the ring while it is night.
type dimmer struct {
	hours clock.Hours
	now   func() time.Time
	ring  *ring.Ring

	mu         sync.Mutex
	brightness float64
}

// look tells the ring whether it is night, and how bright it is then.
func (d *dimmer) look() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hours.Contain(d.now()) {
		d.ring.SetNight(d.brightness)
	} else {
		d.ring.SetNight(0)
	}
}

// run looks at the clock now and then, which may be set meanwhile.
func (d *dimmer) run(ctx context.Context) {
	tick := time.NewTicker(15 * time.Second)
	defer tick.Stop()
	for {
		d.look()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// NightBrightness is the share of its light that the ring keeps at night.
func (b *Body) NightBrightness() float64 {
	b.dimmer.mu.Lock()
	defer b.dimmer.mu.Unlock()
	return b.dimmer.brightness
}

// SetNightBrightness sets it, above 0 and up to 1. If it is night it shows at once.
func (b *Body) SetNightBrightness(share float64) error {
	if !(share > 0 && share <= 1) {
		return fmt.Errorf("night brightness %v: it is above 0 and up to 1", share)
	}
	b.dimmer.mu.Lock()
	b.dimmer.brightness = share
	b.dimmer.mu.Unlock()
	b.dimmer.look()
	return nil
}

// HasNight reports whether there is a night, in which the ring is dimmed.
func (b *Body) HasNight() bool { return b.dimmer.hours != (clock.Hours{}) }
