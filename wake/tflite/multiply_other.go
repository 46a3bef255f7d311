//go:build !amd64 && !arm64

package tflite

func multiply(sums *[spots * lanes]float32, x0, x1, x2, x3, w []float32) {
	multiplyGo(sums, x0, x1, x2, x3, w)
}
