package tflite

import "testing"

// Both forms of eights give what the plain product gives, to the bit.
func TestEightsAreTheProduct(t *testing.T) {
	noise := uint32(1)
	for n := 1; n < 200; n += 1 + n/7 {
		for _, channels := range []int{8, 24, 27} {
			x, w := make([]int8, n), make([]int8, n*channels)
			for _, extreme := range []bool{false, true} {
				for _, v := range [][]int8{x, w} {
					for i := range v {
						noise = noise*1664525 + 1013904223
						if v[i] = int8(noise >> 24); extreme {
							v[i] |= 127 // -1 or 127
							if v[i] == -1 {
								v[i] = -128
							}
						}
					}
				}
				l := newEights(w, n, channels)
				l.load(x)
				for c := 0; c+8 <= channels; c += 8 {
					for j, got := range l.dot(c) {
						if want := dot(x, w[(c+j)*n:][:n]); got != want {
							t.Fatalf("%d elements, channel %d of %d: %d, not %d", n, c+j, channels, got, want)
						}
					}
				}
			}
		}
	}
}
