package echo_test

import (
	"fmt"

	"bellbird/audio"
	"bellbird/audio/echo"
)

// The loudspeaker's device pulls, and the microphone's delivers, each on a thread of its own.
func Example() {
	speaker := audio.NewOutput(0)
	canceller := echo.New()

	// On the loudspeaker's thread:
	var played audio.Frame
	speaker.Pull(&played)
	canceller.Play(&played)

	// On the microphone's goroutine:
	var microphone audio.Frame
	forWakeWord, forRecogniser := canceller.Hear(&microphone)

	fmt.Println(len(forWakeWord), len(forRecogniser), canceller.Over())
	// Output: 320 320 0.02
}
