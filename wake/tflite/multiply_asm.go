//go:build amd64 || arm64

package tflite

// multiply is multiplyGo in assembly: plain Go takes two to three instructions for a product, and an embedding of
// openWakeWord's has 70 million products a second. The lengths are not checked: all four stretches are as long as x0,
// and w is eight times that.
//
//go:noescape
func multiply(sums *[spots * lanes]float32, x0, x1, x2, x3, w []float32)
