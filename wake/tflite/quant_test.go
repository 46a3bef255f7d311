package tflite

import (
	"math"
	"testing"
)

func TestScale(t *testing.T) {
	for _, tt := range []struct {
		factor      float64
		x           int32
		up, outward int32
	}{
		{1, 7, 7, 7},
		{1, -7, -7, -7},
		{0.5, 3, 2, 2},
		{0.5, -3, -1, -2}, // the half
		{0.25, 6, 2, 2},
		{0.25, -6, -1, -2},
		{2, -5, -10, -10},
		{0.0024192, -206, 0, -1}, // -0.49836 becomes -127.58, then -128, of 256ths
		{0.0024192, -300, -1, -1},
	} {
		m := newMultiplier(tt.factor)
		if got := m.scale(tt.x); got != tt.up {
			t.Errorf("scale(%d) by %v is %d, not %d", tt.x, tt.factor, got, tt.up)
		}
		if got := m.scaleAway(tt.x); got != tt.outward {
			t.Errorf("scaleAway(%d) by %v is %d, not %d", tt.x, tt.factor, got, tt.outward)
		}
	}
}

func TestLogisticTable(t *testing.T) {
	table := logisticTable(Quantization{0.1, 10}, Quantization{1.0 / 256, -128})
	for i, got := range table {
		x := 0.1 * float64(i-128-10)
		want := math.Round(256/(1+math.Exp(-x))) - 128
		if math.Abs(float64(got)-min(want, 127)) > 1 {
			t.Errorf("input %d gives %d, not %v", i-128, got, want)
		}
	}
}
