package intents_test

import (
	"slices"
	"testing"

	"bellbird/intents"
)

func TestAnswers(t *testing.T) {
	set, err := intents.Answers()
	if err != nil {
		t.Fatal(err)
	}
	means := intents.Means(set)
	for text, want := range map[string][2]bool{
		"Yes.": {true, false}, "yes please": {true, false}, "OK": {true, false}, "well, go ahead": {true, false}, "Yes, do it!": {true, false},
		"no": {false, true}, "No, thank you.": {false, true}, "don't do it": {false, true}, "please don't": {false, true},
		"": {}, "yes no": {}, "no yes": {}, "yesterday": {}, "know": {}, "set a timer for one minute": {}, "yes but only half": {}, "what": {},
	} {
		if yes, no := means(text); yes != want[0] || no != want[1] {
			t.Errorf("%q: yes %v, no %v", text, yes, no)
		}
	}
}

// The recogniser listens for answers too, and an agent doesn't take them for commands.
func TestHeard(t *testing.T) {
	heard, err := intents.Heard()
	if err != nil {
		t.Fatal(err)
	}
	english, err := intents.English()
	if err != nil {
		t.Fatal(err)
	}
	if want := append(english.Intents(), "yes", "no"); !slices.Equal(heard.Intents(), want) {
		t.Errorf("intents %q, want %q", heard.Intents(), want)
	}
	for _, word := range []string{"yes", "no", "note"} {
		if !slices.Contains(heard.Grammar().Words, word) {
			t.Errorf("nobody listens for %q", word)
		}
	}
	for _, text := range []string{"yes", "no", "okay", "sure"} {
		if m, ok := english.Match(text); ok {
			t.Errorf("%q is the command %s", text, m.Intent)
		}
	}
	if m, ok := english.Match("please take a note"); !ok || m.Intent != "take_note" {
		t.Errorf("take a note: %+v", m)
	}
}
