package worker

import "time"

// meterEvery is how often it is looked how much of a processor a worker took, and patience how many times in a row it may
// have been too much.
const (
	meterEvery = 5 * time.Second
	patience   = 3
)

// meter kills a worker that takes more than its share of a processor over some time, whatever it does with it: calls are
// bounded by their deadlines, but what a plugin's own threads do is not.
func (h *Host) meter(p *process) {
	ticker := time.NewTicker(meterEvery)
	defer ticker.Stop()
	before, known := cpuTime(p.cmd.Process.Pid)
	if !known {
		return // not on this system
	}
	at, over := time.Now(), 0
	for {
		select {
		case <-p.gone:
			return
		case <-ticker.C:
		}
		used, known := cpuTime(p.cmd.Process.Pid)
		if !known {
			continue // it ends
		}
		now := time.Now()
		if used-before <= time.Duration(h.o.Share*float64(now.Sub(at))) {
			over = 0
		} else if over++; over >= patience {
			h.o.Logger.Error("a plugin worker is killed, since it takes too much of the processor", "cpu", used, "share", h.o.Share)
			p.kill()
			return
		}
		before, at = used, now
	}
}
