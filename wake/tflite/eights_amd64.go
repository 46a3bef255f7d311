package tflite

// eights computes the products of a stretch with eight channels at a time, in assembly: plain Go takes twice as many
// instructions here as on arm64, where it is fast enough (see eights_other.go). It has the weights in 16 bits, of each
// two elements those of eight channels, filled up with zeros to eights of elements.
type eights struct {
	x, w []int16
}

func newEights(weights []int8, n, channels int) eights {
	size := (n + 7) &^ 7
	l := eights{x: make([]int16, size), w: make([]int16, channels/8*8*size)}
	for c := range channels &^ 7 {
		to := l.w[c/8*8*size:]
		for i, w := range weights[c*n:][:n] {
			to[i/2*16+c%8*2+i%2] = int16(w)
		}
	}
	return l
}

// load takes the stretch.
func (l *eights) load(x []int8) {
	to := l.x[:len(x)]
	for i, v := range x {
		to[i] = int16(v)
	}
}

// dot is its products with the eight channels from c on.
func (l *eights) dot(c int) (sums [8]int32) {
	dotEight(&sums, l.x, l.w[c*len(l.x):][:8*len(l.x)])
	return sums
}

// dotEight sets sums[c] to Σ x[i]·w[i/2·16 + 2c + i%2]. The lengths are not checked: that of x is a multiple of eight, w
// is eight times that.
//
//go:noescape
func dotEight(sums *[8]int32, x, w []int16)
