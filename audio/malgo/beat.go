package malgo

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// A beat is the pulse of one callback: how long its calls take, and how far apart they are. It is kept by the callback
// without locks, and read by anybody.
type beat struct {
	calls atomic.Uint64
	late  atomic.Uint64              // calls that came after the device's buffers must have been through
	took  [timeClasses]atomic.Uint64 // calls, by how long they took

	last time.Time // the callback's own
}

// Times are counted in classes, four to an octave, from 1 µs to about 16 ms. What is outside is in the first or the last.
const (
	classesPerOctave = 4
	timeClasses      = 14*classesPerOctave + 1
)

func (b *beat) begin() time.Time {
	now := time.Now()
	if !b.last.IsZero() && now.Sub(b.last) > periods*period {
		b.late.Add(1)
	}
	b.last = now
	return now
}

func (b *beat) end(began time.Time) {
	b.took[class(time.Since(began))].Add(1)
	b.calls.Add(1)
}

// class is where a time is counted.
func class(d time.Duration) int {
	us := uint64(max(d, 0)) / uint64(time.Microsecond)
	if us == 0 {
		return 0
	}
	octave := bits.Len64(us) - 1
	quarter := int(us*classesPerOctave>>octave) - classesPerOctave
	return min(octave*classesPerOctave+quarter, timeClasses-1)
}

// upTo is the time below which all of a class are.
func upTo(class int) time.Duration {
	octave, quarter := class/classesPerOctave, class%classesPerOctave
	return time.Duration(1<<octave) * time.Microsecond * time.Duration(classesPerOctave+quarter+1) / classesPerOctave
}

// quantile is a time that the given share of the calls, 0 to 1, stayed below, to about a fifth of it.
func (b *beat) quantile(share float64) time.Duration {
	var counts [timeClasses]uint64
	var all uint64
	for i := range counts {
		counts[i] = b.took[i].Load()
		all += counts[i]
	}
	if all == 0 {
		return 0
	}
	var sum uint64
	for i, n := range counts {
		sum += n
		if float64(sum) >= share*float64(all) {
			return upTo(i)
		}
	}
	return upTo(timeClasses - 1)
}
