package intents_test

import (
	"strings"
	"testing"
	"time"

	"bellbird/intents"
)

func TestParseErrors(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"empty", "# nothing\n", "t.txt: no templates; a section looks like [stop], with one template on each line below it"},
		{"no section", "stop\n", "t.txt:1: a template before the first section: write [intent] above it, or <name> = … for a rule"},
		{"open group", "[a]\nset (the timer\n", `t.txt:2: missing ")" before "end of line"`},
		{"wrong bracket", "[a]\nset (the] timer\n", `t.txt:2: missing ")" before "]"`},
		{"closed too much", "[a]\nset the) timer\n", `t.txt:2: unexpected ")"`},
		{"open reference", "[a]\nset <thing\n", `t.txt:2: missing ">" after "<thing"`},
		{"open slot", "[a]\nset {thing\n", `t.txt:2: missing "}" after "{thing"`},
		{"empty alternative", "[a]\nset (a | ) timer\n", `t.txt:2: nothing is said before ")"`},
		{"capital", "[a]\nSet it\n", `t.txt:2: "Set" is not a word: lower-case letters and apostrophes; write numbers out`},
		{"digit", "[a]\n\n\nset 5\n", `t.txt:4: "5" is not a word: lower-case letters and apostrophes; write numbers out`},
		{"slot", "[a]\nset {timer}\n", "t.txt:2: {timer}: a slot looks like {name:rule} or {name=value}"},
		{"unknown rule", "[a]\nset <b>\n", "t.txt:2: there is no rule <b>"},
		{"unknown rule in a rule", "<c> = <b>\n[a]\nset\n", "t.txt:1: rule <c>: there is no rule <b>"},
		{"unknown rule in a slot", "[a]\nset {x:b}\n", "t.txt:2: there is no rule <b>"},
		{"range", "[a]\nset <9..1>\n", "t.txt:2: <9..1>: the range is empty"},
		{"no range", "[a]\nset <1-9>\n", "t.txt:2: <1-9> is neither the name of a rule nor a range such as <1..99>"},
		{"slot range", "[a]\nset {x:1}\n", "t.txt:2: <1> is neither the name of a rule nor a range such as <1..99>"},
		{"itself", "<b> = x [<b>]\n[a]\nset\n", "t.txt:1: rule <b>: <b> contains itself: b > b"},
		{"type", "<b:float> = x\n[a]\nset\n", `t.txt:1: rule <b>: unknown type "float"; there are text, number, duration and time`},
		{"two types", "<b:number> = one\n<b> = two\n[a]\nset\n", `t.txt:2: rule <b>: its type is "" here and "number" in line 1`},
		{"any", "[a]\nset <any>\n", "t.txt:2: <any> cannot be listened for: begin the line with ~"},
		{"any in a rule", "<b> = <any>\n[a]\nset <b>\n", "t.txt:3: <any> cannot be listened for: begin the line with ~"},
		{"only typed", "~<b> = x\n[a]\nset <b>\n", "t.txt:3: all alternatives of <b> begin with ~, so it cannot be listened for"},
		{"optional", "[a]\n[set] [it]\n", "t.txt:2: everything in this template is optional"},
		{"twice", "[a]\nx\n[b]\ny\n[a]\nz\n", "t.txt:5: section [a] is there twice"},
		{"large", "<b> = " + strings.Repeat("(a | b | c) ", 100) + "\n<c> = " + strings.Repeat("<b> ", 100) +
			"\n<d> = " + strings.Repeat("<c> ", 100) + "\n[a]\n<d>\n", "t.txt:5: the templates are too large with this one: rules within rules multiply"},
		{"deep", "[a]\n" + strings.Repeat("(", 100) + "x\n", "t.txt:2: more than 40 brackets within each other"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := intents.Parse("t.txt", test.text)
			if err == nil || err.Error() != test.want {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
}

func TestEarliestTemplateWins(t *testing.T) {
	_, err := intents.Parse("t", "[a]\n~call {x:any}\n[b]\ncall home {y=1}\n[c]\n(call | call the) {z:any} please\n")
	if err == nil {
		t.Fatal("an <any> that is listened for was taken")
	}
	s, err := intents.Parse("t", "<after> = please\n[a]\ncall home {y=1}\n[b]\n~call {x:any}\n[c]\ncall the doctor\n")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{"call home": "a", "call home please": "a", "call the doctor": "b"} {
		if m, _ := s.Match(text); m.Intent != want {
			t.Errorf("%q is %q, want %q", text, m.Intent, want)
		}
	}
	if m, _ := s.Match("call me a taxi"); m.Slots["x"].Text != "me a taxi" {
		t.Errorf("x is %q, want the longest reading that fits", m.Slots["x"].Text)
	}
	if m, _ := s.Match("call home"); m.Slots["y"].Number != 1 {
		t.Errorf("y is %v, want 1", m.Slots["y"])
	}
}

func TestMatchIsBounded(t *testing.T) {
	s := english(t)
	for _, text := range []string{
		strings.Repeat("a", 1<<20), strings.Repeat("a ", 199), strings.Repeat("1", 300), strings.Repeat("9 ", 40),
		strings.Repeat("timer for ", 19), strings.Repeat("please ", 47), strings.Repeat("how long ", 20) + "left",
	} {
		begin := time.Now()
		s.Match(text)
		if d := time.Since(begin); d > 2*time.Second {
			t.Errorf("%.20q… took %v", text, d)
		}
	}
}

func FuzzMatch(f *testing.F) {
	for _, text := range []string{"set a timer for 1.5 hours", "Okay Nabu, what’s the time?", "volume 50%", "½ hour", "\xff\x00", "10 min ½"} {
		f.Add(text)
	}
	s := english(f)
	f.Fuzz(func(t *testing.T, text string) {
		m, ok := s.Match(text)
		if ok != (m.Intent != "") {
			t.Errorf("%q: ok is %v with intent %q", text, ok, m.Intent)
		}
		if v, has := m.Slots["duration"]; has && v.Duration < 0 {
			t.Errorf("%q: duration %v", text, v.Duration)
		}
		if v, has := m.Slots["percent"]; has && (v.Number < 0 || v.Number > 100) {
			t.Errorf("%q: %d percent", text, v.Number)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"[a]\n(x | y) [z] <b> {s:b} {t=1}\n<b:number> = <1..99>\n", "~<b> = <any>\n[a]\n~<b>\n", "[a]\n[[x] y]"} {
		f.Add(text, "x y")
	}
	f.Fuzz(func(t *testing.T, text, sentence string) {
		s, err := intents.Parse("f", text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f:") {
				t.Errorf("error without the file: %v", err)
			}
			return
		}
		s.Match(sentence)
		s.Grammar()
	})
}
