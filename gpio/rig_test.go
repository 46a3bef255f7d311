package gpio_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"periph.io/x/conn/v3/gpio"
	"periph.io/x/conn/v3/gpio/gpiotest"
	"periph.io/x/conn/v3/spi"

	"bellbird/event"
	body "bellbird/gpio"
	"bellbird/gpio/ring"
)

// A bench is a host whose pins and port are periph's fakes.
type bench struct {
	pins map[string]gpio.PinIO
	port spi.PortCloser
	err  error // of everything
}

func (b *bench) Pin(name string) (gpio.PinIO, error) {
	if b.err != nil {
		return nil, b.err
	}
	if p := b.pins[name]; p != nil {
		return p, nil
	}
	return nil, errors.New("there is no such pin")
}

func (b *bench) SPI(string) (spi.PortCloser, error) { return b.port, b.err }

// input is a pin of periph's fakes. It must be made in the bubble of its test.
func input(name string) *gpiotest.Pin {
	return &gpiotest.Pin{N: name, EdgesChan: make(chan gpio.Level, 16)}
}

// A pin that refuses the times to wait about which drivers don't agree.
type strictPin struct {
	*gpiotest.Pin
	t *testing.T
}

func (p *strictPin) WaitForEdge(d time.Duration) bool {
	if d <= 0 {
		p.t.Errorf("waits for %v", d)
		return false
	}
	return p.Pin.WaitForEdge(d)
}

// A subject is a body that runs on a bench, in a bubble of virtual time.
type subject struct {
	*body.Body
	t     *testing.T
	bench *bench
	bus   *event.Bus
	done  chan struct{}

	mu    sync.Mutex
	facts []event.Fact
	acts  []body.Action
}

// try runs a body on pins that are named, in virtual time.
func try(t *testing.T, o body.Options, prepare func(*subject) body.Options, f func(*subject)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &subject{t: t, bench: &bench{pins: make(map[string]gpio.PinIO)}, bus: new(event.Bus), done: make(chan struct{})}
		if prepare != nil {
			o = prepare(s)
		}
		o.Host, o.Bus = s.bench, s.bus
		o.Do = func(_ string, _ event.Gesture, a body.Action) {
			if a == body.None {
				return
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.acts = append(s.acts, a)
		}
		b, err := body.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		s.Body = b
		s.Ring().Hide(ring.Booting)
		sub := s.bus.Subscribe(1024)
		go func() {
			for fact := range sub.C {
				s.mu.Lock()
				s.facts = append(s.facts, fact)
				s.mu.Unlock()
			}
		}()
		ctx, stop := context.WithCancel(t.Context())
		go func() {
			defer close(s.done)
			if err := b.Run(ctx); err != nil {
				t.Errorf("Run: %v", err)
			}
		}()
		synctest.Wait()
		f(s)
		stop()
		asked := time.Now()
		<-s.done
		if took := time.Since(asked); took > 250*time.Millisecond {
			t.Errorf("it took %v to stop", took)
		}
		sub.Close()
	})
}

// told returns the facts since the last call.
func (s *subject) told() []event.Fact {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	facts := s.facts
	s.facts = nil
	return facts
}

// did returns the actions since the last call.
func (s *subject) did() []body.Action {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	acts := s.acts
	s.acts = nil
	return acts
}

// move puts an edge on a pin.
func (s *subject) move(pin string, l gpio.Level) {
	switch p := s.bench.pins[pin].(type) {
	case *strictPin:
		p.EdgesChan <- l
	case *gpiotest.Pin:
		p.EdgesChan <- l
	default:
		s.t.Fatalf("pin %s", pin)
	}
}
