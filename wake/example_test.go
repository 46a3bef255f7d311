package wake_test

import (
	"context"
	"fmt"
	"log"

	"bellbird/audio"
	"bellbird/wake"
)

// Ears call when they hear their word, and then listen to what is said.
func Example() {
	ctx := context.Background()
	frames := make(chan audio.Frame) // of a microphone
	called := make(chan uint64, 1)
	ears, err := wake.New(wake.Options{
		Words:     []string{"okay_nabu"},
		ModelDirs: []string{"/usr/share/bellbird/models"},
		OnWake: func(call wake.Call) {
			select {
			case called <- call.Frame:
			default:
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	go ears.Run(ctx, frames)

	from := <-called
	voiced, _, err := ears.Listen(ctx, from, 0, func(f audio.Frame) { /* to the recogniser */ })
	fmt.Println(voiced, err)
}

// A Detector by itself needs a Frontend before it.
func ExampleDetector() {
	m, err := wake.LoadModel("models/okay_nabu.json")
	if err != nil {
		log.Fatal(err)
	}
	d, err := wake.NewDetector(m, 0)
	if err != nil {
		log.Fatal(err)
	}
	front := wake.NewFrontend(m.Step)
	var features wake.Features
	for chunk := range make(chan [160]int16) { // 10 ms each
		if front.Write(chunk[:], &features) && d.Write(&features) && d.Heard() {
			fmt.Println(m.Word, d.Score())
		}
	}
}
