package llm_test

import (
	"fmt"
	"strings"

	"bellbird/llm"
)

func ExampleStream() {
	s := llm.NewStream(strings.NewReader("event: word\ndata: {\"text\": \"Hi\"}\n\n: at work\n\ndata: {\"text\":\ndata: \"there\"}\n\n"))
	for {
		var word struct{ Text string }
		_, err := s.Next()
		if err == nil {
			err = s.Decode(&word)
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(word.Text)
	}
	// Output:
	// Hi
	// there
	// EOF
}
