package tflite

import "math"

// A multiplier is a positive real factor as TensorFlow Lite has it: mantissa * 2^(exponent-31), the mantissa in 31 bits.
type multiplier struct {
	mantissa int32
	exponent int
}

func newMultiplier(f float64) multiplier {
	if f == 0 {
		return multiplier{}
	}
	frac, exp := math.Frexp(f)
	q := int64(math.Round(frac * (1 << 31)))
	if q == 1<<31 {
		q /= 2
		exp++
	}
	if exp < -31 {
		return multiplier{}
	}
	return multiplier{int32(q), exp}
}

// scale is x times the multiplier, rounded twice: first to the mantissa's 31 bits, then to the exponent, a half always
// upwards. The library that the models are compared with (libtensorflowlite_c 2.17 on x86-64, with its optimized
// kernels) rounds so, but for scaleAway; rounding once differs in one result of a thousand.
func (m multiplier) scale(x int32) int32 {
	left, right := uint(max(m.exponent, 0)), uint(max(-m.exponent, 0))
	high := (int64(x)<<left*int64(m.mantissa) + 1<<30) >> 31
	return int32((high + int64(1)<<right>>1) >> right)
}

// scaleAway is scale with a half rounded away from zero. The library rounds so in the last channels of a
// DEPTHWISE_CONV_2D, which don't fill a group of eight.
func (m multiplier) scaleAway(x int32) int32 {
	if x < 0 {
		return -m.scale(-x)
	}
	return m.scale(x)
}

// usable tells whether the exponent is one scale was made for.
func (m multiplier) usable() bool { return m.exponent > -31 && m.exponent < 8 }

// An activation is a function fused into an operator.
type activation int

const (
	actNone  activation = 0
	actReLU  activation = 1
	actReLU6 activation = 3
)

// limits are those that the activation sets on the output of an int8 operator.
func (a activation) limits(q Quantization) (lo, hi int32, ok bool) {
	lo, hi = math.MinInt8, math.MaxInt8
	at := func(v float64) int32 {
		return int32(q.ZeroPoint) + int32(math.Round(v/float64(q.Scale)))
	}
	switch a {
	case actNone:
		return lo, hi, true
	case actReLU:
		return max(lo, at(0)), hi, true
	case actReLU6:
		return max(lo, at(0)), min(hi, at(6)), true
	}
	return 0, 0, false
}

// logisticTable has the int8 result of the logistic function for each int8 input x, at index x+128.
func logisticTable(in, out Quantization) (t [256]int8) {
	inverse := 1 / out.Scale
	for i := range t {
		x := in.Scale * float32(i-128-in.ZeroPoint)
		y := 1 / (1 + float32(math.Exp(float64(-x))))
		q := math.Round(float64(float32(y*inverse))) + float64(out.ZeroPoint)
		t[i] = int8(min(max(q, math.MinInt8), math.MaxInt8))
	}
	return t
}
