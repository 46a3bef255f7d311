package sign

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

var samples = []string{
	`{"b":1,"a":[true,false,null,-7,-0,123456789012345678901234567890]}`,
	`{"\u00e4":"\u007f\u0000\u001f\b\f\n\r\t\"\\/<>&","z":"\ud83d\ude00","\ud83d\ude00":"\u2028","\uffff":""}`,
	`{}`, `[]`, `""`, `{"a":{"b":{"c":[]}}}`,
}

func decode(t *testing.T, text string) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestCanonical(t *testing.T) {
	want := []string{
		`{"a":[true,false,null,-7,0,123456789012345678901234567890],"b":1}`,
		`{"z":"\ud83d\ude00","\u00e4":"\u007f\u0000\u001f\b\f\n\r\t\"\\/<>&","\uffff":"","\ud83d\ude00":"\u2028"}`,
		`{}`, `[]`, `""`, `{"a":{"b":{"c":[]}}}`,
	}
	for i, text := range samples {
		got, err := canonical(decode(t, text))
		if err != nil || string(got) != want[i] {
			t.Errorf("%s: %s, %v, want %s", text, got, err, want[i])
		}
	}
	for _, text := range []string{`1.0`, `[1e3]`, `{"a":2E1}`} {
		if got, err := canonical(decode(t, text)); err == nil {
			t.Errorf("%s: %s", text, got)
		}
	}
}

// Beside the program whose way of writing it is.
func TestCanonicalAsPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3 to compare with")
	}
	const program = "import json, sys\nfor text in sys.argv[1:]: print(json.dumps(json.loads(text), sort_keys=True, separators=(',', ':')))"
	out, err := exec.Command(python, append([]string{"-c", program}, samples...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(samples) {
		t.Fatalf("%d lines", len(lines))
	}
	for i, text := range samples {
		if got, err := canonical(decode(t, text)); err != nil || string(got) != lines[i] {
			t.Errorf("%s: %s, %v, Python writes %s", text, got, err, lines[i])
		}
	}
}

// Line ends are those of Unix, wherever a text is cut.
func TestUnixLines(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "a\nb": "a\nb", "a\r\nb\r\n": "a\nb\n", "\r": "\r", "\r\r\n": "\r\n", "\r\n\r": "\n\r", "a\rb\r\r": "a\rb\r\r", "\r\n\r\n": "\n\n",
	} {
		for size := 1; size <= max(len(text), 1); size++ {
			var got bytes.Buffer
			w := &unixLines{to: &got}
			for chunk := range slices.Chunk([]byte(text), size) {
				if n, err := w.Write(chunk); n != len(chunk) || err != nil {
					t.Fatal(n, err)
				}
			}
			if err := w.end(); err != nil || got.String() != want {
				t.Errorf("%q by %d: %q, %v, want %q", text, size, got.String(), err, want)
			}
		}
	}
}
