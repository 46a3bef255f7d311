package audiotest

import "bellbird/audio"

// Ramp returns frames that can be told apart: every sample of frame i of the result says that it is frame first+i, and the
// samples of a frame are all different from silence. Number reads them.
func Ramp(first, n int) []audio.Frame {
	frames := make([]audio.Frame, n)
	for i := range frames {
		frames[i] = Numbered(first + i)
	}
	return frames
}

// Numbered is a frame that carries the number n, from 0 to 32 766.
func Numbered(n int) (f audio.Frame) {
	for i := range f {
		f[i] = int16(n + 1)
	}
	return f
}

// Number returns the number of a frame made by Numbered, or false if f is silence or has been changed in any way.
func Number(f audio.Frame) (n int, ok bool) {
	for _, s := range f {
		if s != f[0] {
			return 0, false
		}
	}
	return int(f[0]) - 1, f[0] > 0
}
