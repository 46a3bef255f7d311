package prompt_test

import (
	"fmt"
	"testing"

	"bellbird/prompt"
)

func ExampleOptions_System() {
	o := prompt.Options{Persona: "You are {ai_name}.", Manners: new("Speak briefly."), UserName: "Ada", AIName: "Wren"}
	fmt.Println(o.System(append(prompt.Parts("{user_name} is a nurse."), "The lights are in two rooms.")))
	// Output:
	// You are Wren.
	//
	// Speak briefly.
	//
	// Ada is a nurse.
	// The lights are in two rooms.
}

func TestSystem(t *testing.T) {
	none := ""
	for _, test := range []struct {
		o     prompt.Options
		parts []string
		want  string
	}{
		{prompt.Options{}, nil, "You are Bellbird, a voice assistant that lives in a smart speaker. You talk with the user.\n\n" + prompt.VoiceManners},
		{prompt.Options{Persona: " Be terse. ", Manners: &none}, nil, "Be terse."},
		{prompt.Options{Persona: "P", Manners: &none}, []string{"", " ", "a", "b"}, "P\n\na\nb"},
		{prompt.Options{Persona: "{ai_name} {user_name} {other}", Manners: &none, AIName: "{user_name}", UserName: " A\nB "}, []string{"{user_name}"}, "{user_name} A B {other}\n\nA B"},
	} {
		if got := test.o.System(test.parts); got != test.want {
			t.Errorf("%+v: %q, want %q", test.o, got, test.want)
		}
	}
	if prompt.Parts(" \n") != nil {
		t.Error("an empty context is a part")
	}
}
