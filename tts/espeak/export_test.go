package espeak

import "time"

// SetPatience shortens the time after which a voice that says nothing is given up.
func (v *Voice) SetPatience(d time.Duration) { v.wait = d }
