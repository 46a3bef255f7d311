package malgo

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"bellbird/audio"
)

// A Card is a microphone and a loudspeaker that are opened together, for something short: Open makes one, Run uses it up.
// The appliance itself has a Supervisor.
type Card struct {
	mic, speaker *half // mic is nil if only playback was asked for
	closed       sync.Once
	latency      time.Duration
	log          *slog.Logger
	frames       chan audio.Frame // waits; the callback has a ring before it
	groups       chan audio.Group
}

// Open opens both devices without starting them, and tells out their latency. Run or Close must follow.
func Open(o Options, out *audio.Output) (*Card, error) {
	c := &Card{latency: o.latency(), log: o.logger(), frames: make(chan audio.Frame), groups: make(chan audio.Group)}
	var err error
	if !o.PlaybackOnly {
		if c.mic, err = openHalf(o, Microphone, out); err != nil {
			return nil, err
		}
	}
	if c.speaker, err = openHalf(o, Loudspeaker, out); err != nil {
		c.Close()
		return nil, err
	}
	out.SetLatency(c.latency)
	return c, nil
}

// Info says what was opened.
func (c *Card) Info() Info {
	i := Info{Latency: c.latency}
	for _, h := range []*half{c.mic, c.speaker} {
		if h != nil {
			h.describe(&i)
		}
	}
	return i
}

// Frames is what the microphone hears. A listener that is more than a second late loses the newest frames. It is never
// closed.
func (c *Card) Frames() <-chan audio.Frame { return c.frames }

// Groups is what all channels of the microphone hear, if Options.Channel is Best. Then there are no Frames.
func (c *Card) Groups() <-chan audio.Group { return c.groups }

// Dropped is the number of frames lost because nobody took them in time.
func (c *Card) Dropped() uint64 {
	if c.mic == nil {
		return 0
	}
	return c.mic.capture.dropped.Load()
}

// Heard is the number of frames that the microphone has delivered, dropped ones included.
func (c *Card) Heard() uint64 {
	if c.mic == nil {
		return 0
	}
	return c.mic.capture.made.Load()
}

// Run starts both devices and closes them when ctx is done. It returns a *Fault if one of them stops by itself, stands
// still or changes its rate; then open another Card. It may be called once.
func (c *Card) Run(ctx context.Context) error {
	err := c.run(ctx)
	if hangs := c.Close(); err == nil {
		err = hangs
	}
	return err
}

func (c *Card) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	handed := make(chan struct{})
	defer func() { cancel(); <-handed }()
	if c.mic == nil {
		close(handed)
	} else {
		go func() {
			defer close(handed)
			c.mic.capture.hand(ctx, c.frames, c.groups)
		}()
	}

	// The loudspeaker first: it is silent until somebody speaks, while the first word heard might ask for an answer.
	now := time.Now()
	var watches []*watch
	var halves []*half
	stopped, messages := make([]<-chan struct{}, 2), make([]<-chan string, 2)
	for i, h := range []*half{c.speaker, c.mic} {
		if h == nil {
			continue
		}
		if f := h.begin(); f != nil {
			return f
		}
		halves, watches = append(halves, h), append(watches, newWatch(h.side, h.name, now))
		stopped[i], messages[i] = h.stopped, h.messages
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case m := <-messages[0]:
			c.log.Debug(says, "device", Loudspeaker, "message", m)
			continue
		case m := <-messages[1]:
			c.log.Debug(says, "device", Microphone, "message", m)
			continue
		case <-stopped[0]: // look at once, don't wait for the tick
		case <-stopped[1]:
		case <-tick.C:
		}
		now := time.Now()
		for i, h := range halves {
			// A constant is for the listener to judge: nothing that opening another card would change.
			if f := watches[i].look(now, h.vitals()); f != nil && f.Reason != Constant {
				return f
			}
		}
	}
}

// Close closes the devices of a card that was not run; Run does it itself.
func (c *Card) Close() error {
	var err error
	c.closed.Do(func() {
		for _, h := range []*half{c.speaker, c.mic} {
			if h == nil {
				continue
			}
			if f := h.end(); f != nil {
				err = f
			}
		}
	})
	return err
}
