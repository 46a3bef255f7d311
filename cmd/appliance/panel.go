package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"sync"

	"bellbird/gpio"
	"bellbird/gpio/led"
	"bellbird/gpio/ring"
	"bellbird/internal/run"
)

// The virtual panel of a demo: the ring and the buttons, in the terminal.

// A liveScreen is a terminal whose last line is the virtual panel's ring. What is written appears above it, line by line.
type liveScreen struct {
	mu   sync.Mutex
	w    io.Writer
	line string
	rest []byte // of a line that is not complete
}

func (l *liveScreen) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, p...)
	end := bytes.LastIndexByte(l.rest, '\n') + 1
	if end == 0 {
		return len(p), nil
	}
	_, err := fmt.Fprintf(l.w, "\r\x1b[K%s%s", l.rest[:end], l.line)
	l.rest = append(l.rest[:0], l.rest[end:]...)
	return len(p), err
}

// show is for gpio.Options: it draws the ring.
func (l *liveScreen) show(frame []led.Color) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.line = "          " + ring.Terminal(frame, true) + "  "
	_, err := fmt.Fprintf(l.w, "\r\x1b[K%s", l.line)
	return err
}

// close ends the live line.
func (l *liveScreen) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.line != "" {
		fmt.Fprint(l.w, "\r\x1b[K")
		l.line = ""
	}
}

// A panel is the virtual body of a demo, on its terminal.
type panel struct {
	*liveScreen
	panel *gpio.Panel
	keys  <-chan rune
	stop  context.CancelFunc
}

// newPanel returns the panel that in and out can be; nil if they are no terminal.
func newPanel(ctx context.Context, in *os.File, out io.Writer) *panel {
	f, ok := out.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" {
		return nil
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return nil
	}
	ctx, stop := context.WithCancel(ctx)
	keys, ok := gpio.Keys(ctx, in)
	if !ok {
		stop()
		return nil
	}
	fmt.Fprintf(out, "The panel: %s.\n\n", gpio.PanelKeys)
	return &panel{&liveScreen{w: out}, gpio.NewPanel(), keys, stop}
}

// fit connects a body to the panel.
func (p *panel) fit(o gpio.Options) gpio.Options {
	o = p.panel.Fit(o)
	o.Lights = p.show
	return o
}

// close leaves the terminal as it was.
func (p *panel) close() {
	p.stop()
	for range p.keys { // until they are closed
	}
	p.liveScreen.close()
}

// part presses what the keys say.
func (p *panel) part() run.Part {
	return run.Part{Name: "keys", Run: func(ctx context.Context) error {
		if err := p.panel.Run(ctx, p.keys); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	}}
}
