// Package rauc has RAUC look after the slots, over D-Bus. It is not a boot loader's backend, nor RAUC's configuration, both
// of which deploy/rauc has for the virtual device.
package rauc

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/godbus/dbus/v5"

	"bellbird/ota"
)

const (
	service   = "de.pengutronix.rauc"
	installer = service + ".Installer"
	busDaemon = "org.freedesktop.DBus"

	accessDenied = busDaemon + ".Error.AccessDenied"
)

// Slots are those that RAUC knows.
type Slots struct {
	// Address is that of the bus; "" is the system's.
	Address string
}

var _ ota.Slots = Slots{}

// A call is a connection to RAUC. Each operation has one of its own, since there are few, and the bus may be restarted.
type call struct {
	bus    *dbus.Conn
	object dbus.BusObject
}

func (s Slots) connect(ctx context.Context) (*call, error) {
	var bus *dbus.Conn
	var err error
	if s.Address == "" {
		bus, err = dbus.ConnectSystemBus(dbus.WithContext(ctx))
	} else {
		bus, err = dbus.Connect(s.Address, dbus.WithContext(ctx))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: there is no D-Bus (%v): install the packages dbus and rauc-service, or use an image with them", ota.ErrNoSlots, err)
	}
	return &call{bus, bus.Object(service, "/")}, nil
}

func (c *call) close() { c.bus.Close() }

// do calls a method of RAUC and stores what it answers in out.
func (c *call) do(ctx context.Context, method string, args []any, out ...any) error {
	answer := c.object.CallWithContext(ctx, installer+"."+method, 0, args...)
	if answer.Err == nil && len(out) > 0 {
		answer.Err = answer.Store(out...)
	}
	return explain(method, answer.Err)
}

// explain says what an error of the bus means.
func explain(method string, err error) error {
	var e dbus.Error
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &e):
		return fmt.Errorf("rauc: %s: %w", method, err)
	}
	switch e.Name {
	case busDaemon + ".Error.ServiceUnknown", busDaemon + ".Error.NameHasNoOwner", busDaemon + ".Error.Spawn.ServiceNotFound":
		return fmt.Errorf("%w: RAUC isn't there: install the package rauc-service, or use an image with it", ota.ErrNoSlots)
	case busDaemon + ".Error.Spawn.ChildExited", busDaemon + ".Error.Spawn.Failed", busDaemon + ".Error.TimedOut":
		return fmt.Errorf("%w: RAUC doesn't start (%v): see \"journalctl -u rauc\", as a rule /etc/rauc/system.conf is missing or wrong", ota.ErrNoSlots, e)
	case accessDenied:
		return fmt.Errorf("rauc: %s: %w: use the user that the appliance runs as, or root", method, err)
	}
	return fmt.Errorf("rauc: %s: %w", method, err)
}

func (c *call) property(ctx context.Context, name string, out any) error {
	answer := c.object.CallWithContext(ctx, busDaemon+".Properties.Get", 0, installer, name)
	var v dbus.Variant
	if answer.Err == nil {
		answer.Err = answer.Store(&v)
	}
	if answer.Err == nil {
		answer.Err = v.Store(out)
	}
	return explain(name, answer.Err)
}

// Compatible is the board of RAUC's configuration.
func (s Slots) Compatible(ctx context.Context) (compatible string, err error) {
	c, err := s.connect(ctx)
	if err != nil {
		return "", err
	}
	defer c.close()
	err = c.property(ctx, "Compatible", &compatible)
	return compatible, err
}

// Slots are those that have a boot name.
func (s Slots) Slots(ctx context.Context) ([]ota.Slot, error) {
	c, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer c.close()
	var all []struct {
		Name  string
		About map[string]dbus.Variant
	}
	if err := c.do(ctx, "GetSlotStatus", nil, &all); err != nil {
		return nil, err
	}
	var primary string
	if err := c.do(ctx, "GetPrimary", nil, &primary); err != nil {
		return nil, err
	}
	var slots []ota.Slot
	for _, a := range all {
		text := func(key string) string {
			v, _ := a.About[key].Value().(string)
			return v
		}
		if text("bootname") == "" {
			continue
		}
		slots = append(slots, ota.Slot{
			Name: a.Name, Boot: text("bootname"), Version: text("bundle.version"), Booted: text("state") == "booted",
			Primary: a.Name == primary, Good: text("boot-status") == "good",
		})
	}
	return slots, nil
}

// Inspect has RAUC check the signature of a bundle, and tells what its manifest says.
func (s Slots) Inspect(ctx context.Context, path string) (b ota.Bundle, err error) {
	if _, err := os.Stat(path); err != nil {
		return b, err // of which RAUC would say no more than of any other
	}
	c, err := s.connect(ctx)
	if err != nil {
		return b, err
	}
	defer c.close()
	err = c.do(ctx, "Info", []any{path}, &b.Compatible, &b.Version)
	var e dbus.Error
	if errors.As(err, &e) && e.Name != accessDenied {
		return b, fmt.Errorf("bundle %s: %w (\"journalctl -u rauc\" has more)", path, ota.ErrBundle)
	}
	return b, err
}

// Mark marks a slot.
func (s Slots) Mark(ctx context.Context, slot string, m ota.Mark) error {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	var name, message string
	return c.do(ctx, "Mark", []any{string(m), slot}, &name, &message)
}

// Install has RAUC install a bundle. If it is installing one already, that has to end first.
func (s Slots) Install(ctx context.Context, path string, progress func(percent int)) error {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	signals := make(chan *dbus.Signal, 64)
	c.bus.Signal(signals)
	for _, match := range [][]dbus.MatchOption{
		{dbus.WithMatchSender(service), dbus.WithMatchInterface(installer), dbus.WithMatchMember("Completed")},
		{dbus.WithMatchSender(service), dbus.WithMatchInterface(busDaemon + ".Properties"), dbus.WithMatchMember("PropertiesChanged")},
		{dbus.WithMatchSender(busDaemon), dbus.WithMatchMember("NameOwnerChanged"), dbus.WithMatchArg(0, service)},
	} {
		if err := c.bus.AddMatchSignalContext(ctx, match...); err != nil {
			return fmt.Errorf("rauc: %w", err)
		}
	}
	var doing string
	if err := c.property(ctx, "Operation", &doing); err != nil {
		return err
	}
	if doing != "idle" {
		if _, err := c.completed(ctx, signals, func(int) {}); err != nil {
			return err
		}
	}
	if err := c.do(ctx, "InstallBundle", []any{path, map[string]dbus.Variant{}}); err != nil {
		return err
	}
	code, err := c.completed(ctx, signals, progress)
	if err != nil || code == 0 {
		return err
	}
	var why string
	if err := c.property(ctx, "LastError", &why); err != nil {
		return err
	}
	return fmt.Errorf("bundle %s is refused: %s", path, why)
}

// completed waits for the end of an installation and returns its code, which is 0 if all went well.
func (c *call) completed(ctx context.Context, signals <-chan *dbus.Signal, progress func(percent int)) (int32, error) {
	for {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case s, open := <-signals:
			if !open {
				return 0, errors.New("rauc: the bus ended while a bundle was being installed: install it again")
			}
			switch s.Name {
			case installer + ".Completed":
				if code, ok := first[int32](s.Body); ok {
					return code, nil
				}
			case busDaemon + ".NameOwnerChanged":
				if len(s.Body) == 3 && s.Body[2] != "" {
					continue // it was just started
				}
				return 0, errors.New("rauc: it ended while a bundle was being installed: see \"journalctl -u rauc\", and install it again")
			case busDaemon + ".Properties.PropertiesChanged":
				if percent, ok := progressOf(s.Body); ok {
					progress(percent)
				}
			}
		}
	}
}

func first[T any](body []any) (v T, ok bool) {
	if len(body) > 0 {
		v, ok = body[0].(T)
	}
	return v, ok
}

// progressOf finds the percentage in a change of properties.
func progressOf(body []any) (int, bool) {
	if len(body) < 2 {
		return 0, false
	}
	changed, _ := body[1].(map[string]dbus.Variant)
	progress, _ := changed["Progress"].Value().([]any)
	percent, ok := first[int32](progress)
	return int(percent), ok
}
