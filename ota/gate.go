package ota

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A Part is something of the device that must work for an update to stay. It must be of the device alone: a server or a
// network that is away says nothing about an update.
type Part struct {
	Name string // as people are told it didn't work: "microphone"

	// Works returns nil if the part works now, and why not if it doesn't. It is called every second until all parts work.
	Works func(ctx context.Context) error
}

const (
	gateBeat   = time.Second
	gateRounds = 5 // in a row in which everything has to work
)

// ailing are the parts that don't work now. What was broken before an update is no reason against it.
func (u *Updater) ailing(ctx context.Context) (names []string) {
	ctx, cancel := context.WithTimeout(ctx, gateRounds*gateBeat)
	defer cancel()
	tick := time.NewTicker(gateBeat)
	defer tick.Stop()
	faults := make(map[string]error)
	for ctx.Err() == nil {
		if faults = round(ctx, u.o.Health, faults); len(faults) == 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	for name := range faults {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// prove waits until all parts work, but those that are excused, and returns the reason if they don't within the time of a
// trial. The error is that of ctx.
func (u *Updater) prove(ctx context.Context, excused []string) (*Reason, error) {
	parts := slices.DeleteFunc(slices.Clone(u.o.Health), func(p Part) bool { return slices.Contains(excused, p.Name) })
	deadline, cancel := context.WithTimeout(ctx, u.o.trial())
	defer cancel()
	tick := time.NewTicker(gateBeat)
	defer tick.Stop()
	faults := make(map[string]error)
	for well := 0; well < gateRounds; {
		faults = round(deadline, parts, faults)
		if deadline.Err() != nil {
			break
		}
		if well++; len(faults) > 0 {
			well = 0
		}
		select {
		case <-tick.C:
		case <-deadline.Done():
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if deadline.Err() == nil {
		return nil, nil
	}
	if len(faults) == 0 {
		return &Reason{Kind: Unhealthy, Parts: []string{"device"}, Detail: "it didn't work for long enough before the deadline"}, nil
	}
	reason := &Reason{Kind: Unhealthy}
	for _, p := range parts {
		if err, bad := faults[p.Name]; bad {
			reason.Parts = append(reason.Parts, p.Name)
			if reason.Detail != "" {
				reason.Detail += "; "
			}
			reason.Detail += fmt.Sprintf("%s: %v", p.Name, err)
		}
	}
	return reason, nil
}

// round asks all parts at once, and returns what is wrong with those that don't work. Of one that gives no answer until ctx
// is done it says what was wrong before, or that.
func round(ctx context.Context, parts []Part, before map[string]error) map[string]error {
	type answer struct {
		name string
		err  error
	}
	answers := make(chan answer, len(parts)) // so that nobody waits who answers late
	for _, p := range parts {
		go func() { answers <- answer{p.Name, p.Works(ctx)} }()
	}
	began := time.Now()
	var missing []string
	for _, p := range parts {
		missing = append(missing, p.Name)
	}
	faults := make(map[string]error)
	for len(missing) > 0 {
		select {
		case a := <-answers:
			missing = slices.DeleteFunc(missing, func(name string) bool { return name == a.name })
			if a.err == nil {
				continue
			}
			faults[a.name] = a.err
			if was := before[a.name]; ctx.Err() != nil && was != nil {
				faults[a.name] = was
			}
		case <-ctx.Done():
			for _, name := range missing {
				if was := before[name]; was != nil {
					faults[name] = was
				} else if time.Since(began) >= gateBeat {
					faults[name] = errors.New("it gives no answer")
				}
			}
			return faults
		}
	}
	return faults
}
