package eval

import "math"

// z is how many standard deviations 95 % are.
const z = 1.959963984540054

// Wilson is the 95 % confidence interval of a share of which k of n were seen.
func Wilson(k, n int) (low, high float64) {
	if n == 0 {
		return 0, 1
	}
	p, m := float64(k)/float64(n), float64(n)
	middle := p + z*z/(2*m)
	half := z * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	low, high = (middle-half)/(1+z*z/m), (middle+half)/(1+z*z/m)
	if k == 0 {
		low = 0 // without the rounding
	}
	if k == n {
		high = 1
	}
	return low, high
}

// Poisson is the exact 95 % confidence interval of the mean number of events, of which k were seen: the means at which k
// or more, and k or fewer, are as unlikely as 2.5 %.
func Poisson(k int) (low, high float64) {
	if k > 0 {
		low = meanAt(k-1, 0.975)
	}
	return low, meanAt(k, 0.025)
}

// meanAt is the mean at which the probability of k or fewer events is p. It falls with the mean, so halving finds it.
func meanAt(k int, p float64) float64 {
	far := 10*math.Sqrt(float64(k)+1) + 10 // ten standard deviations
	low, high := max(0, float64(k)-far), float64(k)+far
	for range 60 {
		middle := (low + high) / 2
		if atMost(k, middle) > p {
			low = middle
		} else {
			high = middle
		}
	}
	return (low + high) / 2
}

// atMost is the probability of k or fewer events, for a mean that is not so far from k that there is nothing to add up.
func atMost(k int, mean float64) float64 {
	factorial, _ := math.Lgamma(float64(k) + 1)
	term := math.Exp(float64(k)*math.Log(mean) - mean - factorial) // that of k events
	sum := 0.0
	for ; k >= 0; k-- {
		sum += term
		term *= float64(k) / mean
	}
	return sum
}
