package pipeline

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChunker(t *testing.T) {
	words := strings.TrimSpace(strings.Repeat("word ", 200)) // 999 bytes
	for name, test := range map[string]struct {
		text string
		want []chunk
	}{
		"nothing":         {" \n ", nil},
		"one sentence":    {"It is late.", []chunk{{"It is late.", end, 0}}},
		"two":             {"Hi. How are you?", []chunk{{"Hi.", sentence, 0}, {"How are you?", end, 1}}},
		"three":           {"This is one. This is two! Is this three?", []chunk{{"This is one.", sentence, 0}, {"This is two!", sentence, 1}, {"Is this three?", end, 2}}},
		"casual":          {"Hello world. and then", []chunk{{"Hello world.", sentence, 0}, {"and then", end, 1}}},
		"quotes":          {`He said "Come in." Then he left.`, []chunk{{`He said "Come in."`, sentence, 0}, {"Then he left.", end, 1}}},
		"other scripts":   {"你好，今天天气很好。明天呢？", []chunk{{"你好，今天天气很好。", sentence, 0}, {"明天呢？", end, 1}}},
		"title":           {"Dr. Smith arrived early with Mrs. Jones.", []chunk{{"Dr. Smith arrived early with Mrs. Jones.", end, 0}}},
		"abbreviation":    {"Bring fruit, e.g. Apples, vs. Pears, etc. And so on.", []chunk{{"Bring fruit, e.g. Apples, vs. Pears, etc. And so on.", end, 0}}},
		"initials":        {"J. R. R. Tolkien was born in the U.S. Army hospital.", []chunk{{"J. R. R. Tolkien was born in the U.S. Army hospital.", end, 0}}},
		"numbers":         {"Pi is 3.14 and it is 3:45 now. Version 1.2.3 is out.", []chunk{{"Pi is 3.14 and it is 3:45 now.", sentence, 0}, {"Version 1.2.3 is out.", end, 1}}},
		"ends in number":  {"The answer is 42. The question is not known.", []chunk{{"The answer is 42.", sentence, 0}, {"The question is not known.", end, 1}}},
		"ends in I":       {"He is older than I. Then they met.", []chunk{{"He is older than I.", sentence, 0}, {"Then they met.", end, 1}}},
		"list":            {"1. Wash the rice twice.", []chunk{{"1. Wash the rice twice.", end, 0}}},
		"address":         {"See https://example.org/a.b?C=d for more.", []chunk{{"See https://example.org/a.b?C=d for more.", end, 0}}},
		"ellipsis":        {"Well... Let me think about it.", []chunk{{"Well...", sentence, 0}, {"Let me think about it.", end, 1}}},
		"paragraphs":      {"a line without a stop\n\nand another one", []chunk{{"a line without a stop", paragraph, 0}, {"and another one", end, 1}}},
		"small paragraph": {"Title\n\nand then a longer text", []chunk{{"Title and then a longer text", end, 0}}},
		"white space":     {"so   much\n space\there", []chunk{{"so much space here", end, 0}}},
		"semicolon":       {words[:380] + "; But then " + words[:19], []chunk{{words[:380] + ";", secondary, 0}, {"But then " + words[:19], end, 1}}},
		"long":            {words, []chunk{{words[:749], maxLen, 0}, {words[750:], end, 1}}},
		"endless":         {strings.Repeat("x", 1600), []chunk{{strings.Repeat("x", 750), maxLen, 0}, {strings.Repeat("x", 850), end, 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			var c chunker
			whole := append(c.push(test.text), c.flush()...)
			if diff := cmp.Diff(test.want, whole, cmp.AllowUnexported(chunk{})); diff != "" {
				t.Errorf("at once (-want +got):\n%s", diff)
			}
			var bits chunker
			var chunks []chunk
			for _, r := range test.text {
				chunks = append(chunks, bits.push(string(r))...)
			}
			chunks = append(chunks, bits.flush()...)
			if diff := cmp.Diff(whole, chunks, cmp.AllowUnexported(chunk{})); diff != "" {
				t.Errorf("letter by letter (-at once +got):\n%s", diff)
			}
		})
	}
}

func FuzzChunker(f *testing.F) {
	f.Add("Dr. Smith; Then\n\nx. Y", 3)
	f.Fuzz(func(t *testing.T, text string, at int) {
		text = text[:min(len(text), maxAnswer)]
		at = min(max(at, 0), len(text))
		var c chunker
		var got []string
		for _, ch := range append(append(c.push(text[:at]), c.push(text[at:])...), c.flush()...) {
			got = append(got, ch.text)
		}
		// Cutting neither loses nor adds anything but white space.
		squeeze := func(s string) string { return strings.Join(strings.Fields(s), "") }
		if squeeze(strings.Join(got, "")) != squeeze(text) {
			t.Errorf("%q became %q", text, got)
		}
	})
}

func TestSpeakable(t *testing.T) {
	for text, want := range map[string]bool{"ok": true, "42": true, "é": true, "漢": true, "": false, "…!": false, "🙂 —": false, "_": false} {
		if speakable(text) != want {
			t.Errorf("speakable(%q) = %v", text, !want)
		}
	}
}
