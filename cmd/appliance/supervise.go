package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"bellbird/event"
	"bellbird/internal/run"
)

// What the service manager is told: that the appliance is ready, what it does, that its sound still flows, and that it
// stops. deploy/systemd has the other side of it.

const (
	// heartbeat is how often the sound is looked at.
	heartbeat = time.Second

	// readyAnyway is how long sound may take to flow before the appliance is called ready without it. It can still be
	// reached over its socket then, and says what is wrong.
	readyAnyway = 10 * time.Second
)

// A supervision tells systemd how the appliance is. Outside of systemd it does nothing.
type supervision struct {
	bus *event.Bus

	// flowing tells whether the loop that brings the sound from the microphone and to the loudspeaker still turns. It
	// must be true of a loop that waits for a sound card to be plugged in: the watchdog restarts the appliance, and that
	// brings no card. It is called every second and must not wait.
	flowing func() bool

	begun func() bool // whether a frame was heard; nil: there is no need for one
	words string      // what the appliance waits for, as wakeWords names them
	log   *slog.Logger
}

// part is what keeps systemd informed. It must come last, so that everything else has begun when it says that the
// appliance is ready, and still works when it says that it stops.
func (s supervision) part() run.Part { return run.Part{Name: "supervision", Run: s.run} }

func (s supervision) run(ctx context.Context) error {
	if os.Getenv("NOTIFY_SOCKET") == "" {
		<-ctx.Done()
		return nil
	}
	watchdog, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		return fmt.Errorf("systemd's watchdog: %w", err)
	}
	beat := heartbeat
	if watchdog > 0 {
		beat = min(beat, watchdog/3)
	}
	facts := s.bus.Subscribe(64)
	defer facts.Close()
	tick := time.NewTicker(beat)
	defer tick.Stop()

	m := manager{log: s.log}
	c := condition{state: event.Idle, words: s.words}
	ready := false
	for waited := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			m.tell(daemon.SdNotifyStopping, "stopping")
			return nil
		case f := <-facts.C:
			c.learn(f)
			if ready {
				m.tell("", c.String())
			}
			continue
		case <-tick.C:
		}
		waited += beat
		c.still = !s.flowing()
		message := ""
		if !c.still && watchdog > 0 {
			message = daemon.SdNotifyWatchdog
		}
		if !ready && (!c.still && (s.begun == nil || s.begun()) || waited >= readyAnyway) {
			ready = true
			message = strings.TrimSpace(daemon.SdNotifyReady + "\n" + message)
		}
		if ready {
			m.tell(message, c.String())
		}
	}
}

// A manager is systemd's end.
type manager struct {
	log    *slog.Logger
	status string // as it was told last
	failed bool
}

// tell sends a message, if there is one, and the status, if it is another one.
func (m *manager) tell(message, status string) {
	var lines []string
	if message != "" {
		lines = append(lines, message)
	}
	if status != m.status {
		lines = append(lines, "STATUS="+status)
	}
	if len(lines) == 0 {
		return
	}
	_, err := daemon.SdNotify(false, strings.Join(lines, "\n"))
	switch {
	case err == nil:
		m.status, m.failed = status, false
	case !m.failed: // once, not every second
		m.log.Warn("systemd can't be told how the appliance is", "err", err)
		m.failed = true
	}
}

// A condition is what the facts say of the appliance, in a line for systemctl. Nothing that was said is in it.
type condition struct {
	words   string
	state   event.State
	still   bool   // the sound doesn't flow
	deaf    string // why the microphone delivers nothing of use
	muted   bool
	ringing map[int]bool // timers and alarms
}

func (c *condition) learn(f event.Fact) {
	switch f := f.(type) {
	case event.StateChanged:
		c.state = f.To
	case event.MicrophoneFault:
		c.deaf = f.Reason
	case event.MicrophoneWell:
		c.deaf = ""
	case event.MuteChanged:
		c.muted = f.Muted
	case event.TimerChanged:
		if f.What == event.TimerRinging {
			if c.ringing == nil {
				c.ringing = make(map[int]bool)
			}
			c.ringing[f.ID] = true
		} else {
			delete(c.ringing, f.ID)
		}
	}
}

func (c *condition) String() string {
	doing := string(c.state)
	switch {
	case c.state == event.Failed:
		doing = "a turn failed"
	case c.state == event.FollowUp:
		doing = "waiting for a reply"
	case c.state == event.Idle && len(c.ringing) > 0:
		doing = "ringing"
	case c.state == event.Idle && !c.muted && c.deaf == "" && !c.still:
		doing = "waiting for " + c.words
	}
	if c.muted {
		doing += ", the microphone is muted"
	}
	if c.deaf != "" {
		doing += fmt.Sprintf(", the microphone is deaf (%s)", c.deaf)
	}
	if c.still {
		doing += ", no sound flows"
	}
	return doing
}
