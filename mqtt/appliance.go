package mqtt

import (
	"context"
	"time"
)

// An Appliance is what can be shown and done. What is nil or empty isn't there, and neither is its entity. The functions
// are called from goroutines of this package, one after the other for those that only tell something; these must not wait.
type Appliance struct {
	Private, Mute, WakeSound                   *Switch
	Volume, Gain, Sensitivity, FollowUp, Night *Number
	Chat, WakeWord, Voice                      *Select
	Ring                                       *Light

	// Buttons are the names of its buttons, in an order that lasts.
	Buttons []string

	// Timers is whether it keeps timers.
	Timers bool

	Listen, Stop, Restart, Identify func() error

	// Announce speaks a text, and returns when it was spoken.
	Announce func(ctx context.Context, text string) error

	// Ask runs a turn as if text had been heard, and returns its answer when it is over. Of a private chat the answer is
	// not published.
	Ask func(ctx context.Context, text string) (answer string, private bool, err error)

	Plugins   func() []Plugin
	SetPlugin func(name string, on bool) error

	Update  func() Update
	Install func() error

	// Problems are what else is wrong with it, a sentence each.
	Problems func() []string

	Diagnostics Diagnostics
}

// A Switch is on or off.
type Switch struct {
	Get func() bool
	Set func(on bool) error
}

// A Number can be set within its bounds. What it is may be NaN, which is told as unknown.
type Number struct {
	Min, Max, Step float64
	Unit           string
	Get            func() float64
	Set            func(value float64) error
}

// A Select is one of several. What it is may be none of them, such as a private chat, which is told as unknown.
type Select struct {
	Options func() []string
	Get     func() string
	Set     func(option string) error
}

// A Light is the ring.
type Light struct {
	Effects []string
	Get     func() LightState
	Set     func(LightCommand) error
}

// A LightState is how the ring is set.
type LightState struct {
	On         bool
	Brightness uint8
	R, G, B    uint8
	Effect     string // "" is none
}

// A LightCommand is what shall become of the ring. What is nil shall stay.
type LightCommand struct {
	On         *bool
	Brightness *uint8
	Color      *[3]uint8
	Effect     *string
}

// A Plugin is shown with a switch and a problem.
type Plugin struct {
	Name    string
	Enabled bool
	Problem string // "": it is well
}

// An Update is the firmware that runs, and the one that could. Latest is Installed if there is none.
type Update struct {
	Installed, Latest, Title, Summary, URL string
	InProgress                             bool
	Percent                                *int
}

// Diagnostics are measures of the machine. An error is told as unknown.
type Diagnostics struct {
	Signal      func() (float64, error) // dBm
	Temperature func() (float64, error) // of the processor, °C
	Load        func() (float64, error) // mean of a minute
	Memory      func() (float64, error) // used, percent
	Free        func() (float64, error) // of the state's file system, MiB
	Underruns   func() (float64, error) // frames of sound that came too late
	Started     func() (time.Time, error)
	Address     func() (string, error)
}
