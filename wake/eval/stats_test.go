package eval

import (
	"math"
	"testing"
)

func TestWilson(t *testing.T) {
	// Those at the ends are z²/(n+z²); the other is R's prop.test(10, 100, correct = FALSE).
	for _, test := range []struct {
		k, n      int
		low, high float64
	}{
		{0, 80, 0, 0.04581813},
		{10, 100, 0.05522914, 0.17436566},
		{80, 80, 0.95418187, 1},
		{0, 0, 0, 1},
	} {
		low, high := Wilson(test.k, test.n)
		if math.Abs(low-test.low) > 1e-6 || math.Abs(high-test.high) > 1e-6 {
			t.Errorf("%d of %d: %.8f to %.8f, want %.8f to %.8f", test.k, test.n, low, high, test.low, test.high)
		}
	}
}

func TestPoisson(t *testing.T) {
	// The values are those of the usual tables (Garwood 1936).
	for _, test := range []struct {
		k         int
		low, high float64
	}{
		{0, 0, 3.6889},
		{1, 0.0253, 5.5716},
		{5, 1.6235, 11.6683},
		{10, 4.7954, 18.3904},
		{100, 81.3640, 121.6273},
	} {
		low, high := Poisson(test.k)
		if math.Abs(low-test.low) > 1e-3 || math.Abs(high-test.high) > 1e-3 {
			t.Errorf("%d: %.4f to %.4f, want %.4f to %.4f", test.k, low, high, test.low, test.high)
		}
	}
	if low, high := Poisson(5000); !(low > 4860 && low < 4863 && high > 5140 && high < 5142) {
		t.Errorf("5000: %.1f to %.1f", low, high)
	}
}
