package intents_test

import (
	"fmt"

	"bellbird/intents"
)

func ExampleSet_Match() {
	sentences, err := intents.English()
	if err != nil {
		fmt.Println(err)
		return
	}
	m, ok := sentences.Match("Okay Nabu, set a pasta timer for an hour and a half, please.")
	fmt.Println(ok, m.Intent, m.Slots["name"].Text, m.Slots["duration"].Duration)
	_, ok = sentences.Match("What is the meaning of life?")
	fmt.Println(ok)
	// Output:
	// true set_timer pasta 1h30m0s
	// false
}

func ExampleSet_Grammar() {
	lights, err := intents.Parse("lights.txt", "[light]\nturn the light (on {state=on} | off {state=off}) [now]\n")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(lights.Grammar().JSGF)
	// Output:
	// #JSGF V1.0;
	// grammar bellbird;
	// public <command> = ( <intent_light> );
	// <intent_light> = turn the light ( on | off ) [ now ];
}
