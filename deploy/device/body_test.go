package device_test

import (
	"strings"
	"testing"
	"time"

	"bellbird/deploy/device"
	"bellbird/gpio/ring"
)

// What is done to the body on a real kernel leads to what it should. The ring's bytes tell so, and a broker on the host.
func TestBody(t *testing.T) {
	m := boot(t, false)
	home := newHouse(t)
	a := start(t, m, home.config+body)
	at := shows(t, m, 0, "idle", ring.Scene{Rung: ring.Idle})
	home.await("state", "idle")

	set(t, m, device.Button, false)
	a.await("button_moved", "Button", "top", "Down", true)
	at = shows(t, m, at, "button touched", ring.Scene{Rung: ring.Touched})
	set(t, m, device.Button, true)
	a.await("button_pressed", "Button", "top", "Gesture", "press")
	a.await("state_changed", "To", "listening")
	at = shows(t, m, at, "listening", ring.Scene{Rung: ring.Listening})
	home.await("state", "listening")

	set(t, m, device.Switch, false)
	a.await("mute_changed", "Muted", true, "Switch", true)
	at = shows(t, m, at, "muted", ring.Scene{Rung: ring.Idle, Muted: true})
	home.await("mute", "ON")
	a.await("state_changed", "To", "idle")

	// While it is muted no button listens.
	set(t, m, device.Button, false)
	a.await("button_moved", "Button", "top", "Down", true)
	set(t, m, device.Button, true)
	a.await("button_pressed", "Button", "top")
	at = shows(t, m, at, "muted again", ring.Scene{Rung: ring.Idle, Muted: true})
	a.without("state_changed", "To", "listening")

	set(t, m, device.Switch, true)
	a.await("mute_changed", "Muted", false)
	shows(t, m, at, "not muted", ring.Scene{Rung: ring.Idle})
	home.await("mute", "OFF")
	if n := m.Wire.Len() % frameBytes; n != 0 {
		t.Errorf("the ring was sent %d bytes more than whole frames", n)
	}
}

// A button that is stuck, and a chip that vanishes with all its lines, break nothing else.
func TestBrokenBody(t *testing.T) {
	m := boot(t, true)
	a := start(t, m, body)
	set(t, m, device.Second, false)
	a.await("button_moved", "Button", "side", "Down", true)
	f := a.await("body_fault", "Part", "side")
	t.Logf("a stuck button: %v", f.Data["Reason"])
	set(t, m, device.Button, false)
	a.await("button_moved", "Button", "top", "Down", true)
	set(t, m, device.Button, true)
	a.await("button_pressed", "Button", "top")
	set(t, m, device.Second, true)
	pause(t, m, time.Second)
	set(t, m, device.Second, false)
	a.await("button_moved", "Button", "side", "Down", true)
	set(t, m, device.Second, true)
	a.await("button_moved", "Button", "side", "Down", false)

	run(t, m, "echo 9030000.pl061 >/sys/bus/amba/drivers/pl061_gpio/unbind; ! [ -e /sys/class/gpio/gpiochip0 ]")
	parts := map[any]bool{}
	for len(parts) < 3 {
		f := a.await("body_fault")
		t.Logf("without its chip: %v: %v", f.Data["Part"], f.Data["Reason"])
		parts[f.Data["Part"]] = true
	}
	before, began := a.cpu(), uptime(t, m)
	pause(t, m, 10*time.Second)
	t.Logf("without its chip it takes %.1f %% of a core", 100*(a.cpu()-before).Seconds()/(uptime(t, m)-began).Seconds())
	answer := run(t, m, "/share/bellbird ask --config /tmp/config.toml what time is it")
	if !strings.HasPrefix(answer, "It's ") {
		t.Errorf("without its chip it answers %q", answer)
	}

	a.stop()
}
