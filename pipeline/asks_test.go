package pipeline

import "testing"

func TestAsks(t *testing.T) {
	for text, want := range map[string]bool{
		"":                                false,
		"?":                               true,
		"Shall I?":                        true,
		"It's done. Anything else? ":      true,
		"He said: \"shall I?\"":           true,
		"Shall I (now)?!":                 true,
		"Shall I? 😊":                      true,
		"好吗？":                             true,
		"هل أفعل؟":                        true,
		"Which one? The first.":           false,
		"I wonder.":                       false,
		"Is it 5? No: 6":                  false,
		"See example.com/?q=what is that": false,
	} {
		if asks(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}
