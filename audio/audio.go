// Package audio holds the one sound format that the appliance uses inside, and what is done to sound in that format:
// rings, mixing, resampling, levels, reading and writing files. It opens no devices (audio/malgo does) and understands
// nothing of what is said.
package audio

import "time"

// Rate is a number of samples a second in each channel.
type Rate int

// The inner format: 16 kHz, mono, signed 16 bit, in frames of 20 ms. Everything between the edges uses it, so that no
// part has to ask; whatever a device, a file or a voice has is converted where it comes in.
const (
	SampleRate    Rate = 16000
	FrameSize          = 320 // samples
	FrameDuration      = 20 * time.Millisecond
)

// A Frame is 20 ms of sound in the inner format. Frames are passed by value: 640 bytes copied through a channel cost
// less than an allocation, and nobody has to agree on who owns them.
type Frame [FrameSize]int16

// Frames is the number of whole frames in d, rounded up.
func Frames(d time.Duration) int {
	return int((d + FrameDuration - 1) / FrameDuration)
}
