package gpio_test

import (
	"fmt"

	"bellbird/gpio"
)

// A body without anything is no error.
func ExampleOpen() {
	body, err := gpio.Open(gpio.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer body.Close()
	for _, part := range body.Report() {
		fmt.Println(part)
	}
	// Output:
	// mute switch: skipped: none is configured
	// ring: skipped: none is configured, and the board has none
	// buttons: skipped: none is configured, and the board has none
	// dial: skipped: none is configured
}

func ExampleMute() {
	mute, err := gpio.NewMute(gpio.MuteOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(mute.Muted(), mute.Set(true), mute.Muted())
	// Output: false <nil> true
}
