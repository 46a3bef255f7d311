package pocketsphinx

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestWords(t *testing.T) {
	path := []segment{{name: "<sil>"}, {name: "okay"}, {name: "nabu"}, {name: "[NOISE]"}, {name: "say"}, {name: "okay"}, {name: "<sil>"}}
	got := words(path, map[string]bool{"okay": true, "nabu": true})
	if want := []string{"say", "okay"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q: the wake word goes only in front", got, want)
	}
}

func TestCompare(t *testing.T) {
	sizes := map[string]int{"stop": 4, "it": 2}
	phones := []segment{
		{"SIL", 0, 9, -100}, {"S", 10, 14, -50}, {"T", 15, 19, -50}, {"AA", 20, 24, -50}, {"P", 25, 29, -50},
		{"IH", 30, 34, -50}, {"T", 35, 39, -50}, {"K", 40, 49, -100},
	}
	phones[0].name = "<sil>"
	sentence := []segment{{"<sil>", 0, 9, -100}, {"stop", 10, 29, -200}, {"it", 30, 39, -200}, {"<sil>", 40, 49, -200}}
	f, ok := compare(sentence, phones, sizes)
	want := fit{worst: -10, whole: -4, ignored: 0.25, crowded: 1}
	if !ok || f != want {
		t.Errorf("got %+v, want %+v", f, want)
	}
	if better := (fit{worst: -1, whole: -1, crowded: 1}); better.trust() <= f.trust() {
		t.Errorf("a better fit is trusted less: %g, %g", better.trust(), f.trust())
	}
	if _, ok := compare(sentence[:1], phones, sizes); ok {
		t.Error("silence has a fit")
	}
	if _, ok := compare(nil, nil, nil); ok {
		t.Error("nothing has a fit")
	}
	if _, ok := compare([]segment{{"stop", 60, 70, -1}}, phones, sizes); ok {
		t.Error("a word after the end has a fit")
	}
}

func TestLeastTrust(t *testing.T) {
	if leastTrust(1) != 0 || leastTrust(2) <= 0 || leastTrust(0.5) >= 0 || leastTrust(-1) > -1e300 {
		t.Error("strictness goes the wrong way")
	}
}

func TestReducedDictionary(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cmudict-en-us.dict")
	if err := os.WriteFile(file, []byte("a AH\na(2) EY\nstop S T AA P\nstopped S T AA P T\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := reduced(file, []string{"stop", "a", "unmute"})
	if want := "a AH\na(2) EY\nstop S T AA P\nunmute AH N M Y UW T\n"; string(got) != want || err != nil {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if sizes := phoneCounts(got); sizes["stop"] != 4 || sizes["a"] != 1 || len(sizes) != 3 {
		t.Errorf("phones of each word: %v", sizes)
	}
	if _, err := reduced(file, []string{"zebra"}); err == nil || !strings.Contains(err.Error(), `no pronunciation of "zebra"`) {
		t.Errorf("a word that is nowhere: %v", err)
	}
	if _, err := reduced(file+"x", nil); err == nil || !strings.Contains(err.Error(), remedy) {
		t.Errorf("no dictionary: %v", err)
	}
}
