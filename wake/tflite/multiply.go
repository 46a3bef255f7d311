package tflite

// multiplyGo adds the products of four stretches with the weights of eight channels to the sums: sums[8·s+c] becomes
// larger by Σ x_s[i]·w[8·i+c].
func multiplyGo(sums *[spots * lanes]float32, x0, x1, x2, x3, w []float32) {
	n := len(x0)
	if n == 0 {
		return
	}
	x1, x2, x3 = x1[:n], x2[:n], x3[:n]
	// Two channels at a time: eight sums and what they are made of fit into the registers.
	for c := 0; c < lanes; c += 2 {
		a0, a1 := sums[c], sums[c+1]
		b0, b1 := sums[lanes+c], sums[lanes+c+1]
		c0, c1 := sums[2*lanes+c], sums[2*lanes+c+1]
		d0, d1 := sums[3*lanes+c], sums[3*lanes+c+1]
		v := w[c:]
		for i, x := range x0 {
			w0, w1 := v[0], v[1]
			a0 += x * w0
			a1 += x * w1
			x = x1[i]
			b0 += x * w0
			b1 += x * w1
			x = x2[i]
			c0 += x * w0
			c1 += x * w1
			x = x3[i]
			d0 += x * w0
			d1 += x * w1
			if len(v) < lanes+2 {
				break
			}
			v = v[lanes:]
		}
		sums[c], sums[c+1] = a0, a1
		sums[lanes+c], sums[lanes+c+1] = b0, b1
		sums[2*lanes+c], sums[2*lanes+c+1] = c0, c1
		sums[3*lanes+c], sums[3*lanes+c+1] = d0, d1
	}
}
