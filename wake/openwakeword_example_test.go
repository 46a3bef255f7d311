package wake_test

import (
	"fmt"
	"log"

	"bellbird/wake"
)

// Two words of openWakeWord's, whose files the user has put into a directory, share one embedder.
func ExampleLoadOpenWakeWord() {
	const dir = "/data/openwakeword"
	embedder, err := wake.LoadEmbedder(dir)
	if err != nil {
		log.Fatal(err)
	}
	var words []*wake.OpenWakeWord
	for _, name := range []string{"alexa_v0.1", "hey_jarvis_v0.1"} {
		w, err := wake.LoadOpenWakeWord(dir, name, 0)
		if err != nil {
			log.Fatal(err)
		}
		words = append(words, w)
	}

	var frame [320]int16 // from the microphone, again and again
	if embedder.Write(frame[:]) {
		for _, w := range words {
			if w.Write(embedder.Embedding()) && w.Heard() {
				fmt.Println(w.Name(), w.Score())
			}
		}
	}
}
