package ota

import (
	"context"
	"time"
)

// Settle and Step are what Run does at the start and from time to time.
func (u *Updater) Settle(ctx context.Context) error {
	err := u.settle(ctx)
	u.settled = err == nil
	return err
}

func (u *Updater) Step(ctx context.Context) {
	u.again = time.Time{}
	u.step(ctx, true)
}

// OnSaved has f called when the state was saved.
func (u *Updater) OnSaved(f func()) { u.saved = f }

// Compare compares versions.
func Compare(a, b string) int { return compare(a, b) }

// WindowOpen is whether the window is open for a device that is late by that much, 0 to 1.
func (u *Updater) WindowOpen(late float64) bool {
	u.late = late
	return u.windowOpen()
}

// Reserve is what is left free on the data partition.
const Reserve = reserve
