package gpio

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"periph.io/x/conn/v3/gpio"
	"periph.io/x/conn/v3/gpio/gpioreg"
	"periph.io/x/conn/v3/spi"
	"periph.io/x/conn/v3/spi/spireg"
	"periph.io/x/host/v3"
)

// A State is what became of a part at the start.
type State string

// The states.
const (
	Loaded  State = "loaded"
	Skipped State = "skipped" // it isn't there, and needn't be
	Failed  State = "failed"  // it should be there
)

// A Status is what became of a part of the body.
type Status struct {
	Part   string
	State  State
	Detail string // where it is, why it was skipped, or what failed
	Remedy string // of one that failed
}

// String is the status on one line.
func (s Status) String() string {
	line := s.Part + ": " + string(s.State) + ": " + s.Detail
	if s.Remedy != "" {
		line += " (" + s.Remedy + ")"
	}
	return line
}

func (b *Body) loaded(part, detail string) {
	b.report = append(b.report, Status{Part: part, State: Loaded, Detail: detail})
	b.o.Logger.Info("part of the body", "part", part, "state", Loaded, "detail", detail)
}

func (b *Body) skipped(part, why string) {
	b.report = append(b.report, Status{Part: part, State: Skipped, Detail: why})
	b.o.Logger.Info("part of the body", "part", part, "state", Skipped, "detail", why)
}

func (b *Body) failed(part, place string, err error) {
	s := Status{Part: part, State: Failed, Detail: fmt.Sprintf("%s: %v", place, err), Remedy: remedy(err)}
	b.report = append(b.report, s)
	b.o.Logger.Warn("part of the body", "part", part, "state", Failed, "detail", s.Detail, "remedy", s.Remedy)
}

// Errors of what isn't there.
var (
	errNoGPIO = errors.New("this machine has no pins that can be used")
	errNoPin  = errors.New("there is no such pin")
	errNoSPI  = errors.New("there is no SPI device")
)

// remedy says what to do about an error, some of which the drivers give only as text.
func remedy(err error) string {
	is := func(target error, text string) bool {
		return errors.Is(err, target) || strings.Contains(err.Error(), text)
	}
	switch {
	case errors.Is(err, errNoSPI):
		return `enable SPI: "dtparam=spi=on" in /boot/firmware/config.txt, and start the machine again`
	case errors.Is(err, errNoGPIO):
		return `without a body, set board = "none"`
	case errors.Is(err, errNoPin):
		return `"gpioinfo" lists the pins by name`
	case is(fs.ErrPermission, "permission denied"):
		return `the user that runs bellbird must be in the groups "gpio" and "spi"`
	case is(syscall.EBUSY, "busy"):
		return `another program uses it: is the appliance running? "gpioinfo" says who has a pin`
	}
	return "see docs/hardware.md"
}

// A Host is where the body is connected. Its pins and ports have names.
type Host interface {
	Pin(name string) (gpio.PinIO, error)
	SPI(name string) (spi.PortCloser, error)
}

// machine is the machine itself, through periph.
type machine struct{}

func (machine) Pin(name string) (gpio.PinIO, error) {
	if _, err := host.Init(); err != nil {
		return nil, err
	}
	if p := gpioreg.ByName(name); p != nil {
		return p, nil
	}
	chips, _ := filepath.Glob("/dev/gpiochip*") // the pattern is right
	switch {
	case len(chips) == 0:
		return nil, errNoGPIO
	case syscall.Access(chips[0], 4) != nil: // to read
		return nil, fmt.Errorf("%s: %w", chips[0], fs.ErrPermission)
	}
	return nil, errNoPin
}

func (machine) SPI(name string) (spi.PortCloser, error) {
	if _, err := host.Init(); err != nil {
		return nil, err
	}
	p, err := spireg.Open(name)
	if err == nil {
		return p, nil
	}
	if devices, _ := filepath.Glob("/dev/spidev*"); len(devices) == 0 {
		return nil, errNoSPI
	}
	return nil, err
}
