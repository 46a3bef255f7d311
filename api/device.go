package api

import (
	"net/http"
	"strconv"
	"time"

	"bellbird/event"
)

// A State is what the appliance is and does.
type State struct {
	State    event.State `json:"state"`
	Since    time.Time   `json:"since"`
	Run      uint64      `json:"run"` // of the last turn; 0: there was none
	Version  string      `json:"version"`
	Began    time.Time   `json:"began"`          // the program
	Chat     string      `json:"chat,omitempty"` // the active one; empty if it is private
	Private  bool        `json:"private"`
	Volume   Volume      `json:"volume"`
	Mute     *Mute       `json:"mute,omitempty"` // without a microphone: nil
	Problems []string    `json:"problems"`       // for people
}

// A Volume is how loud it is.
type Volume struct {
	Percent int  `json:"percent"` // 0 to 100
	Muted   bool `json:"muted"`   // the loudspeaker
}

// A VolumeChange is a change of a Volume. What is nil stays.
type VolumeChange struct {
	Percent *int  `json:"percent"`
	Muted   *bool `json:"muted"`
}

// A Mute is whether the microphone is muted, and whether it is a switch that nothing else can overrule.
type Mute struct {
	Muted  bool `json:"muted"`
	Switch bool `json:"switch"`
}

// A Timer is a timer or an alarm.
type Timer struct {
	ID      int       `json:"id"`
	Name    string    `json:"name,omitempty"` // empty also if it was set in a private chat
	Alarm   bool      `json:"alarm"`
	Ends    time.Time `json:"ends"`              // when it rings next; when it should have if it rings
	Total   float64   `json:"seconds,omitempty"` // of a timer
	Days    []string  `json:"days,omitempty"`    // on which an alarm rings again and again: "Monday" …
	Ringing bool      `json:"ringing"`
	Snoozed bool      `json:"snoozed"`
}

// A Model is an engine that does a part of the work.
type Model struct {
	Kind    string `json:"kind"` // of the work: "llm", "stt", "tts"
	Name    string `json:"name"`
	Model   string `json:"model,omitempty"`   // which of the engine's
	Address string `json:"address,omitempty"` // of its server; none if it is in the appliance itself
	Active  bool   `json:"active"`            // it does the work at present
	Reached *bool  `json:"reached"`           // when it was last wanted; nil: it wasn't yet
}

// maxTimerName is in bytes, and maxTimer in seconds.
const (
	maxTimerName = 100
	maxTimer     = 7 * 24 * 60 * 60
)

func (o *Options) deviceRoutes(t *table) {
	if o.State != nil {
		t.handle("GET /api/state", o.serve(func(*http.Request) (any, error) { return o.State(), nil }))
	}
	if o.Volume != nil {
		t.handle("GET /api/volume", o.serve(func(*http.Request) (any, error) { return o.Volume(), nil }))
		t.handle("PUT /api/volume", o.serve(func(r *http.Request) (any, error) {
			var v VolumeChange
			if err := read(r, &v); err != nil {
				return nil, err
			}
			if v.Percent != nil && (*v.Percent < 0 || *v.Percent > 100) {
				return nil, Errorf(http.StatusBadRequest, "percent = %d: it goes from 0 to 100", *v.Percent)
			}
			if err := o.SetVolume(v); err != nil {
				return nil, err
			}
			return o.Volume(), nil
		}))
	}
	if o.Mute != nil {
		t.handle("GET /api/mute", o.serve(func(*http.Request) (any, error) { return o.Mute(), nil }))
		t.handle("PUT /api/mute", o.serve(func(r *http.Request) (any, error) {
			var m struct{ Muted *bool }
			if err := read(r, &m); err != nil {
				return nil, err
			}
			if m.Muted == nil {
				return nil, Errorf(http.StatusBadRequest, `say {"muted": true} or {"muted": false}`)
			}
			if err := o.SetMute(*m.Muted); err != nil {
				return nil, err
			}
			return o.Mute(), nil
		}))
	}
	if o.Timers != nil {
		t.handle("GET /api/timers", o.serve(func(*http.Request) (any, error) { return o.Timers(), nil }))
		t.handle("POST /api/timers", o.serve(func(r *http.Request) (any, error) {
			var n struct {
				Name    string
				Seconds float64
			}
			if err := read(r, &n); err != nil {
				return nil, err
			}
			if len(n.Name) > maxTimerName || n.Seconds < 1 || n.Seconds > maxTimer {
				return nil, Errorf(http.StatusBadRequest, "a timer has 1 to %d seconds, and a name of %d bytes at most", maxTimer, maxTimerName)
			}
			return nil, o.SetTimer(n.Name, time.Duration(n.Seconds*float64(time.Second)))
		}))
		t.handle("DELETE /api/timers/{id}", o.serve(func(r *http.Request) (any, error) {
			id, err := strconv.Atoi(r.PathValue("id"))
			if err != nil || !o.CancelTimer(id) {
				return nil, Errorf(http.StatusNotFound, "there is no timer %.20q", r.PathValue("id"))
			}
			return nil, nil
		}))
	}
	if o.Models != nil {
		t.handle("GET /api/models", o.serve(func(*http.Request) (any, error) { return o.Models(), nil }))
	}
}
