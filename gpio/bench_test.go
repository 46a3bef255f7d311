package gpio_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"periph.io/x/conn/v3"
	"periph.io/x/conn/v3/gpio"
	"periph.io/x/conn/v3/physic"
	"periph.io/x/conn/v3/spi"
	"periph.io/x/conn/v3/spi/spitest"

	"bellbird/event"
	body "bellbird/gpio"
	"bellbird/gpio/ring"
)

// A promptPort tells each frame.
type promptPort struct {
	spitest.Record
	sent chan time.Time
}

func (p *promptPort) Connect(physic.Frequency, spi.Mode, int) (spi.Conn, error) {
	return &promptConn{p.sent}, nil
}

type promptConn struct{ sent chan time.Time }

func (c *promptConn) String() string               { return "prompt" }
func (c *promptConn) Duplex() conn.Duplex          { return 0 }
func (c *promptConn) TxPackets([]spi.Packet) error { return nil }
func (c *promptConn) Tx([]byte, []byte) error {
	select {
	case c.sent <- time.Now():
	default:
	}
	return nil
}

// report adds the middle and the worst of a hundred to a benchmark.
func report(b *testing.B, what string, all []time.Duration) {
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, what+"-p50-ms")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, what+"-p99-ms")
}

// On the real clock: how long after an edge its fact is told, beyond the debounce of 40 ms; and how long after a fact the
// first other frame is on the wire.
func BenchmarkLatency(b *testing.B) {
	pin := input("B")
	port := &promptPort{sent: make(chan time.Time, 1)}
	host := &bench{pins: map[string]gpio.PinIO{"GPIO17": pin}, port: port}
	bus := new(event.Bus)
	o, err := body.Open(body.Options{Board: "respeaker-2mic", Host: host, Bus: bus})
	if err != nil {
		b.Fatal(err)
	}
	o.Ring().Hide(ring.Booting)
	ctx, stop := context.WithCancel(b.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = o.Run(ctx) }()
	facts := bus.Subscribe(100)
	time.Sleep(300 * time.Millisecond)

	var toFact, toFrame []time.Duration
	level := gpio.Low
	percent := 0
	for b.Loop() {
		edge := time.Now()
		pin.EdgesChan <- level
		level = !level
		for moved := false; !moved; {
			_, moved = (<-facts.C).(event.ButtonMoved)
		}
		toFact = append(toFact, time.Since(edge)-40*time.Millisecond)

		time.Sleep(150 * time.Millisecond) // no frame is due
		select {
		case <-port.sent:
		default:
		}
		percent = percent%100 + 1
		told := time.Now()
		bus.Publish(event.VolumeChanged{Percent: percent})
		toFrame = append(toFrame, (<-port.sent).Sub(told))
		time.Sleep(50 * time.Millisecond)
	}
	report(b, "edge-to-fact", toFact)
	report(b, "fact-to-frame", toFrame)
	stop()
	<-done
}
