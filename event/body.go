package event

import "time"

// A Gesture is what somebody did to a button.
type Gesture string

// The gestures. A press is short; double and triple are short presses in quick succession.
const (
	Press  Gesture = "press"
	Double Gesture = "double"
	Triple Gesture = "triple"
	Long   Gesture = "long"
	// While a button is held to reset the appliance, first it warns, then the reset is armed: it happens at the release.
	ResetWarned    Gesture = "reset_warned"
	ResetArmed     Gesture = "reset_armed"
	ResetReleased  Gesture = "reset"
	ResetAbandoned Gesture = "reset_abandoned" // released after the warning, before the reset was armed
)

// ButtonMoved tells that a button went down or up, its bouncing removed.
type ButtonMoved struct {
	At     time.Time
	Button string
	Down   bool
}

// ButtonPressed tells a gesture, once it is certain.
type ButtonPressed struct {
	At      time.Time
	Button  string
	Gesture Gesture
}

// DialTurned tells by how many detents the dial was turned, clockwise if more than zero.
type DialTurned struct {
	At    time.Time
	Steps int
}

// MuteChanged tells whether the microphone is muted. No sound is heard by anything while it is.
type MuteChanged struct {
	At     time.Time
	Muted  bool
	Switch bool // the slide switch says mute, so that nothing else can end it
}

// PrivacyChanged tells whether the chat in which turns are kept is a private one now.
type PrivacyChanged struct {
	At      time.Time
	Private bool
}

// BodyFault tells that a button, the switch or the ring doesn't work any more; BodyWell, that it does again.
type BodyFault struct {
	At     time.Time
	Part   string
	Reason string
}

// BodyWell is the end of a BodyFault.
type BodyWell struct {
	At   time.Time
	Part string
}

func (ButtonMoved) fact()    {}
func (ButtonPressed) fact()  {}
func (DialTurned) fact()     {}
func (MuteChanged) fact()    {}
func (PrivacyChanged) fact() {}
func (BodyFault) fact()      {}
func (BodyWell) fact()       {}

// LoudspeakerFault tells that nothing can be said any more, and why.
type LoudspeakerFault struct {
	At     time.Time
	Reason string // as audio/malgo names it, such as "missing" or "stalled"
}

// LoudspeakerWell tells that a fault of the loudspeaker is over.
type LoudspeakerWell struct{ At time.Time }

func (LoudspeakerFault) fact() {}
func (LoudspeakerWell) fact()  {}
