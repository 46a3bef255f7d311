//go:build !amd64

package tflite

// eights computes the products of a stretch with eight channels at a time. It has the weights of two channels in one
// number, low + high·2^32, so that one multiplication does two: the sums stay apart, for each fits into 32 bits. Of each
// element there are four such numbers for eight channels; what channels are left over are not in it.
type eights struct {
	x     []int8
	pairs []int64
}

func newEights(weights []int8, n, channels int) eights {
	pairs := make([]int64, 0, channels/8*4*n)
	for c := 0; c+8 <= channels; c += 8 {
		for i := range n {
			for j := c; j < c+8; j += 2 {
				pairs = append(pairs, int64(weights[j*n+i])+int64(weights[(j+1)*n+i])<<32)
			}
		}
	}
	return eights{pairs: pairs}
}

// load takes the stretch.
func (l *eights) load(x []int8) { l.x = x }

// dot is its products with the eight channels from c on.
func (l *eights) dot(c int) (sums [8]int32) {
	n := len(l.x)
	w := l.pairs[c/2*n:][:4*n]
	var s0, s1, s2, s3 int64
	for _, v := range l.x {
		if len(w) < 4 {
			break
		}
		v := int64(v)
		s0 += v * w[0]
		s1 += v * w[1]
		s2 += v * w[2]
		s3 += v * w[3]
		w = w[4:]
	}
	for i, s := range [...]int64{s0, s1, s2, s3} {
		low := int32(s)
		sums[2*i], sums[2*i+1] = low, int32((s-int64(low))>>32)
	}
	return sums
}
