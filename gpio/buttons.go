package gpio

import (
	"context"
	"fmt"
	"time"

	"periph.io/x/conn/v3/gpio"

	"bellbird/event"
)

// An Action is what a gesture leads to.
type Action string

// The actions.
const (
	None          Action = "none"
	Listen        Action = "listen" // or stop what is going on: a ringing timer, a turn, which may be an announcement
	Stop          Action = "stop"   // the same, without listening if there is nothing to stop
	ToggleMute    Action = "mute"   // or unmute the microphone
	TogglePrivate Action = "private"
	VolumeUp      Action = "volume_up"
	VolumeDown    Action = "volume_down"
	Reset         Action = "reset" // only by holding, and not to be configured
)

// actions are those that can be configured.
var actions = []Action{None, Listen, Stop, ToggleMute, TogglePrivate, VolumeUp, VolumeDown}

// Bounds of the time for which a contact may bounce.
const (
	debounceLeast, debounceMost = 20 * time.Millisecond, 80 * time.Millisecond
	debounceDefault             = 40 * time.Millisecond
)

// A Button is a push button. Of one that belongs to the board only what is different has to be set.
type Button struct {
	Name string `toml:"name"` // in facts and messages; default its pin
	Pin  string `toml:"pin"`  // such as "GPIO17"
	// ActiveHigh is set if the pin is high while the button is down. Else the button connects it to ground.
	ActiveHigh bool `toml:"active_high"`
	// Debounce is for how long the contact may bounce, 20 ms to 80 ms; default 40 ms.
	Debounce time.Duration `toml:"debounce"`
	// Single is set if there shall be no double and triple presses, so that a press need not wait for another.
	Single bool `toml:"single"`
	// NoReset is set if holding it for 22 seconds shall not reset the appliance.
	NoReset bool `toml:"no_reset"`

	// What gestures lead to: "none", "listen", "stop", "mute", "private", "volume_up" or "volume_down". Defaults:
	// press listens, long is private, the others none.
	Press  Action `toml:"press"`
	Double Action `toml:"double"`
	Triple Action `toml:"triple"`
	Long   Action `toml:"long"`
}

// action is what a gesture leads to.
func (b *Button) action(g event.Gesture) Action {
	switch g {
	case event.Press:
		return b.Press
	case event.Double:
		return b.Double
	case event.Triple:
		return b.Triple
	case event.Long:
		return b.Long
	case event.ResetReleased:
		return Reset
	}
	return None
}

// bounce checks a time, and gives it its default.
func bounce(d *time.Duration) error {
	if *d == 0 {
		*d = debounceDefault
	}
	if *d < debounceLeast || *d > debounceMost {
		return fmt.Errorf("debounce %v: it goes from %v to %v", *d, debounceLeast, debounceMost)
	}
	return nil
}

// pullFor is the resistor that gives a line its level at rest.
func pullFor(activeHigh bool) gpio.Pull {
	if activeHigh {
		return gpio.PullDown
	}
	return gpio.PullUp
}

// A button is one that is there.
type button struct {
	Button
	level  level
	press  gestures
	tell   func(event.Fact)
	do     func(button string, g event.Gesture, a Action)
	notice func(part, reason string)
}

// open begins to listen to the button. One that is down already is not noticed until it was up.
func (b *button) open(pin gpio.PinIO, fault func(error)) error {
	l := &line{pin: pin, pull: pullFor(b.ActiveHigh), fault: fault}
	high, err := l.open()
	if err != nil {
		return err
	}
	b.press = gestures{single: b.Single, resets: !b.NoReset}
	b.found(high)
	b.level = level{
		line: l, high: high, debounce: b.Debounce,
		moved: b.moved, lost: b.lost, found: b.found, due: b.press.due, pass: b.pass,
	}
	return nil
}

// found begins with a button that may be down already, which is not a press.
func (b *button) found(high gpio.Level) {
	b.press.down = b.isDown(high)
	b.press.ignored = b.press.down
}

func (b *button) isDown(high gpio.Level) bool { return bool(high) == b.ActiveHigh }

func (b *button) run(ctx context.Context) { b.level.run(ctx) }

func (b *button) moved(high gpio.Level, at time.Time) {
	down := b.isDown(high)
	if down == b.press.down {
		return
	}
	noticed := !b.press.ignored
	g := b.press.move(down, at)
	if noticed || down && !b.press.ignored {
		b.tell(event.ButtonMoved{At: at, Button: b.Name, Down: down})
	}
	b.gesture(g)
}

func (b *button) pass(at time.Time) {
	g, stuck := b.press.pass(at)
	b.gesture(g)
	if stuck {
		b.tell(event.ButtonMoved{At: at, Button: b.Name})
		b.notice(b.Name, "it has been down for a minute, and is ignored until it is up")
	}
}

// lost takes a button that vanished for one that nobody presses.
func (b *button) lost() {
	g := b.press.ignore()
	if b.press.down {
		b.press.down, b.press.ignored = false, false
		b.tell(event.ButtonMoved{At: time.Now(), Button: b.Name})
	}
	b.gesture(g)
}

func (b *button) gesture(g event.Gesture) {
	if g == "" {
		return
	}
	b.tell(event.ButtonPressed{At: time.Now(), Button: b.Name, Gesture: g})
	b.do(b.Name, g, b.action(g))
}
