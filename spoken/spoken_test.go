package spoken_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"bellbird/spoken"
)

func ExampleCleaner() {
	var c spoken.Cleaner
	for _, piece := range []string{"<thi", "nk>Twelve, I guess.</think>There are **tw", "elve** of them", " 🎉 (see [the list](https://example.com))."} {
		fmt.Printf("%q ", c.Push(piece))
	}
	fmt.Printf("%q\n", c.Flush())
	// Output: "" "There are tw" "elve of them" ", see the list." ""
}

var table = []struct{ name, text, want string }{
	{"plain", "It's 3:04 PM. It's 20 °C, half past 5; AT&T & Co. cost $5 (or 4 €).", "It's 3:04 PM. It's 20 °C, half past 5; AT&T & Co. cost $5, or 4 €."},
	{"spaces", "  a \t b\r\nc  \n\n\n d ", "a b\nc\n\nd"},
	{"thought", "<think>What?\nHm.</think>\n\nHello.", "Hello."},
	{"thoughts of many kinds", "a<Thinking x='1'>b</THINKING> c<thinking>d</thinking>e<seed:think>f</seed:think> [THINK]g[/THINK]h", "a ce h"},
	{"a thought that isn't one", "I think </think> so", "I think so"},
	{"a thought never ended", "Yes. <think>but what if", "Yes."},
	{"a half opener", "Yes. <thin", "Yes."},
	{"nested", "<think>a<b>c</b></think >d", "d"},
	{"written calls", "Ok.<tool_call>{\"name\":\"x\"}</tool_call> Done.<|im_end|>", "Ok. Done."},
	{"stage directions", "Hello <<avatar: smile>>there. 1 << 3", "Hello there. 1 3"},
	{"fence", "Run this:\n```go\nx := 1 // `y`\n```\nand wait.", "Run this:\n\nand wait."},
	{"fence of tildes", "So:\n~~~\ncode\n~~~~\nDone.", "So:\n\nDone."},
	{"fence never ended", "So:\n```\ncode", "So:"},
	{"longer fence", "````\n```\n````ok", "ok"},
	{"code", "Type `ls -l`, then ``a`b``.", "Type, then."},
	{"an apostrophe", "It`s five o`clock.", "Its five oclock."},
	{"a stray backtick", "A ` stands\nhere.", "A stands\nhere."},
	{"emphasis", "***Very*** __nice__, _really_ ~~bad~~ snake_case_name.", "Very nice, really bad snake case name."},
	{"products", "2*3 is 6, and 2 * 4 is 8 * or so", "2 times 3 is 6, and 2 times 4 is 8 times or so"},
	{"about", "It's ~5 km.", "It's ~5 km."},
	{"heading", "# Weather\nSunny.\n## Then #1\nMore", "Weather.\nSunny.\nThen #1.\nMore"},
	{"no heading", "#1 is best", "#1 is best"},
	{"list", "Buy:\n- milk\n* eggs!\n  + bread\n• tea\n1. one\n2) two\n\nBye", "Buy:\nmilk.\neggs!\nbread.\ntea.\n1. one.\n2, two.\n\nBye"},
	{"numbers are no list", "-5 degrees\n10 degrees\n2026", "-5 degrees\n10 degrees\n2026"},
	{"rules", "a\n---\nb\n* * *\nc\n===\n___\nd", "a\n\nb\n\nc\n\nd"},
	{"quotation", "> He said\n> so.", "He said\nso."},
	{"table", "Here:\n| a | b |\n|---|---|\n| 1 | 2 |\nThat's it.", "Here:\n\nThat's it."},
	{"links", "See [the **docs**](https://x.org/a_b) or [this][1] or [that].[^2]", "See the docs or this or that."},
	{"image", "A cat: ![cat](cat.png) here.", "A cat: here."},
	{"brackets", "a [b\nc] d!", "a b\nc d!"},
	{"addresses", "Go to https://www.Example.com/a/b?c=d. Or (http://x.org), hey http hello", "Go to example.com. Or, x.org, hey http hello"},
	{"tags", "a <b>b</b><br/>c<p>d</p> 3 < 4 > 2 <https://x.org> <i", "a b\nc\nd\n3 < 4 > 2"},
	{"text after a lesser sign", "if x <y then stop", "if x y then stop"},
	{"comment", "a <!-- b > c --> d", "a d"},
	{"parentheses", "Turn (slowly). (Yes) I (do)\nNow (a, b) go :)", "Turn, slowly. Yes, I, do\nNow, a, b, go :"},
	{"entities", "a &amp; b&nbsp;c &lt;b&gt; &unknown; &x", "a & b c <b> &unknown; &x"},
	{"escapes", `\*not\* a\_b C:\temp`, "not ab C:temp"},
	{"emoji", "Done ✅! 👩‍👩‍👧 family 🇦🇹, 1️⃣ ❤️ → ok ☀", "Done! family, 1 ok"},
	{"scripts", "نمی\u200cخواهم 你好。", "نمی\u200cخواهم 你好。"},
	{"unseen", "a\u202eb\u200bc\x00d\ufeff\U000e0041", "abc d"},
	{"no UTF-8", "a\xffb\xe2\x82", "ab"},
	{"nothing", " \n <think>x</think> 🎉 `x` ", ""},
}

func TestClean(t *testing.T) {
	for _, test := range table {
		if got := spoken.Clean(test.text); got != test.want {
			t.Errorf("%s: %q\nbecame %q\nwant   %q", test.name, test.text, got, test.want)
		}
	}
}

// A cleaner that was flushed begins anew.
func TestReuse(t *testing.T) {
	var c spoken.Cleaner
	for range 2 {
		if got := c.Push("- <think>a") + c.Push("`") + c.Flush(); got != "" {
			t.Errorf("%q", got)
		}
		if got := c.Push("Hello") + c.Flush(); got != "Hello" {
			t.Errorf("%q", got)
		}
	}
}

// What can be spoken isn't held back without need.
func TestPrompt(t *testing.T) {
	var c spoken.Cleaner
	for _, piece := range []string{"Hello there.", " It's", " 5 o'clock", ", and (as you", " know) time", " for tea", "."} {
		if got := c.Push(piece); len(got) < len(strings.TrimSpace(piece))-1 {
			t.Errorf("of %q only %q came", piece, got)
		}
	}
}

// However large and hopeless a text is, it takes time in proportion, and little is held.
func TestLarge(t *testing.T) {
	for _, part := range []string{"<", "<a", "[", "`", "``a", "((", "*", "- ", "&", "<think>", "![", "https://", "|", "~", "</", "[a](", "<<a", "1", "#", "<!-", "\\"} {
		got := spoken.Clean(strings.Repeat(part, 5000))
		if len(got) > 5000*len(part)*2 {
			t.Errorf("%q grew to %d", part, len(got))
		}
	}
}

func FuzzAnySplit(f *testing.F) {
	for _, test := range table {
		f.Add(test.text, uint64(len(test.text)*7919))
	}
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		want := spoken.Clean(text)
		var c spoken.Cleaner
		var got strings.Builder
		for rest := text; rest != ""; {
			seed = seed*6364136223846793005 + 1442695040888963407
			n := min(len(rest), int(seed>>33%7))
			got.WriteString(c.Push(rest[:n]))
			rest = rest[n:]
		}
		got.WriteString(c.Flush())
		if got.String() != want {
			t.Fatalf("%q in pieces: %q\nwhole: %q", text, &got, want)
		}
		if !utf8.ValidString(want) || want != strings.TrimSpace(want) {
			t.Fatalf("%q became %q", text, want)
		}
		if i := strings.IndexAny(want, "`*\u202e\u200b\U0001F389✅\x00\x1b"); i >= 0 {
			t.Fatalf("%q became %q", text, want)
		}
		if strings.Contains(want, "   ") || strings.Contains(want, "\n\n\n") {
			t.Fatalf("white space in %q", want)
		}
	})
}
