package main

import (
	"slices"
	"testing"
)

func TestVoiceNames(t *testing.T) {
	got := voiceNames(`Pty Language       Age/Gender VoiceName          File                 Other Languages
 2  en-gb           --/M      English_(Great_Britain) gmw/en               (en 2)
 3  en-uk           --/M      english-mb-en1     mb/mb-en1            (en-gb 3)(en 2)
 2  en-us           --/M      English_(America)  gmw/en-US            (en 3)
 5  variant         --/M      Storm              !v/Storm             (en-us 5)
 2  en-us           --/M      English_(America)  gmw/en-US            (en 3)
`)
	if want := []string{"en-gb", "en-us"}; !slices.Equal(got, want) {
		t.Errorf("the voices are %q, not %q", got, want)
	}
	if got := voiceNames("\nunreadable\n"); got != nil {
		t.Errorf("of what is no list they are %q", got)
	}
}

func TestVoiceChoice(t *testing.T) {
	needDemo(t)
	names := espeakVoices(t.Context(), "", "en")
	if !slices.Contains(names, "en-us") || !slices.Contains(names, "en-gb") {
		t.Fatalf("espeak-ng has the voices %q", names)
	}
	v := voiceOf(t, "en-us+m5")
	c := voiceChoice(v, names)
	if c.Get() != "en-us+m5" || !slices.Contains(c.Options(), "en-us+m5") || len(c.Options()) != len(names)+1 {
		t.Errorf("it is %q of %q", c.Get(), c.Options())
	}
	for _, name := range names { // each can really be had
		if err := c.Set(name); err != nil || c.Get() != name {
			t.Errorf("%q: it is %q, error %v", name, c.Get(), err)
		}
	}
	if err := c.Set("nobody"); err == nil || c.Get() != names[len(names)-1] {
		t.Errorf("it is %q, error %v", c.Get(), err)
	}
}
