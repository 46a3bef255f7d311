package main

import "testing"

func TestLoudest(t *testing.T) {
	var l loudest
	if v := l.level(); v != 0 {
		t.Errorf("before anything was heard it is %v dB", v)
	}
	for _, dB := range []float64{-60, -18.5, -30, -59} {
		l.hear(dB)
	}
	if v := l.level(); v != -18.5 {
		t.Errorf("after a call it is %v dB", v)
	}
	for range 50 {
		l.hear(-60)
	}
	if v := l.level(); v != -60 {
		t.Errorf("a second later it is %v dB", v)
	}
}
