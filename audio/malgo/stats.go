package malgo

import "time"

// Stats are counts of a Supervisor since it was made, and how long its callbacks take.
type Stats struct {
	Microphone, Loudspeaker SideStats
}

// SideStats are those of one side.
type SideStats struct {
	Frames  uint64 // that came from the microphone, or were pulled for the loudspeaker
	Dropped uint64 // frames of the microphone that were lost because nobody took them in time
	Late    uint64 // calls of the device that came so late that it must have run dry, or over
	Opened  uint64 // how often the device was opened
}

// Since is what has been counted after before was taken.
func (s Stats) Since(before Stats) Stats {
	return Stats{s.Microphone.since(before.Microphone), s.Loudspeaker.since(before.Loudspeaker)}
}

func (s SideStats) since(b SideStats) SideStats {
	return SideStats{s.Frames - b.Frames, s.Dropped - b.Dropped, s.Late - b.Late, s.Opened - b.Opened}
}

func (s SideStats) plus(h *half) SideStats {
	if c := h.capture; c != nil {
		s.Frames += c.made.Load()
		s.Dropped += c.dropped.Load()
		s.Late += c.beat.late.Load()
	} else {
		s.Frames += h.playback.pulled.Load()
		s.Late += h.playback.beat.late.Load()
	}
	return s
}

// Stats returns the counts. They are taken one by one, not at one instant.
func (s *Supervisor) Stats() Stats {
	var all Stats
	for _, k := range s.keepers {
		if k.side == Microphone {
			all.Microphone = k.stats()
		} else {
			all.Loudspeaker = k.stats()
		}
	}
	return all
}

func (k *keeper) stats() SideStats {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.past
	if h := k.half.Load(); h != nil {
		s = s.plus(h)
	}
	s.Opened = k.opened.Load()
	return s
}

// CallbackTime is the time that the given share, 0 to 1, of the calls of a side took at most, to about a fifth. It is of
// the device that is open now; 0 if none is.
func (s *Supervisor) CallbackTime(side Side, share float64) time.Duration {
	for _, k := range s.keepers {
		if h := k.half.Load(); h != nil && k.side == side {
			return h.beat().quantile(share)
		}
	}
	return 0
}

func (h *half) beat() *beat {
	if h.capture != nil {
		return &h.capture.beat
	}
	return &h.playback.beat
}
