package event

import "time"

// An UpdatePhase is what is being done about an update of the firmware.
type UpdatePhase string

// The phases of an update, in the order in which it goes through them.
const (
	UpdateNone        UpdatePhase = ""
	UpdateDownloading UpdatePhase = "downloading"
	UpdateInstalling  UpdatePhase = "installing"
	UpdateInstalled   UpdatePhase = "installed"    // it waits for a moment to restart into it
	UpdateRestarting  UpdatePhase = "restarting"   // the restart has been asked for
	UpdateTrial       UpdatePhase = "trial"        // it runs, and has to prove itself
	UpdateRollingBack UpdatePhase = "rolling_back" // the former version is being gone back to
)

// UpdateChanged tells how far an update is, or that there is one.
type UpdateChanged struct {
	At      time.Time
	Phase   UpdatePhase
	Version string // that is installed, or, in no phase, the newest that could be; "" if there is none
	Percent int    // of downloading and installing together
}

// UpdateEnded tells what became of an update. Result is "committed", "rolled_back", "kept" (it is faulty, but there is
// nothing to go back to) or "failed" (nothing was changed); Reason is a sentence for people, and empty of one that was
// committed.
type UpdateEnded struct {
	At            time.Time
	Version, From string
	Result        string
	Reason        string
}

func (UpdateChanged) fact() {}
func (UpdateEnded) fact()   {}
