package tflite

import (
	"math"
	"testing"
)

// The assembly gives what the plain Go gives, but for the last bits: it may join a product and a sum, or not.
func TestMultiplyIsItsTwin(t *testing.T) {
	noise := uint32(1)
	random := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			noise = noise*1664525 + 1013904223
			v[i] = float32(int32(noise)) / (1 << 31)
		}
		return v
	}
	for n := range 100 {
		var got, want [spots * lanes]float32
		copy(got[:], random(len(got)))
		want = got
		x, w := random(4*n), random(lanes*n)
		multiply(&got, x[:n], x[n:][:n], x[2*n:][:n], x[3*n:], w)
		multiplyGo(&want, x[:n], x[n:][:n], x[2*n:][:n], x[3*n:], w)
		for i := range got {
			if math.Abs(float64(got[i]-want[i])) > 2e-5 {
				t.Fatalf("%d products: sum %d is %v, not %v", n, i, got[i], want[i])
			}
		}
	}
}

func BenchmarkMultiply(b *testing.B) {
	const n = 144
	x, w := make([]float32, 4*n), make([]float32, lanes*n)
	var sums [spots * lanes]float32
	for _, f := range []struct {
		name string
		f    func(sums *[spots * lanes]float32, x0, x1, x2, x3, w []float32)
	}{{"used", multiply}, {"go", multiplyGo}} {
		b.Run(f.name, func(b *testing.B) {
			for b.Loop() {
				f.f(&sums, x[:n], x[n:][:n], x[2*n:][:n], x[3*n:], w)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(n*spots*lanes), "ns/product")
		})
	}
}
