package llmtest_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"bellbird/dialog"
	"bellbird/llm"
	"bellbird/llm/llmtest"
)

var update = flag.Bool("update", false, "write the golden requests anew")

const golden = "testdata/conversation.txtar"

// TestGolden compares what is sent with what is written down.
func TestGolden(t *testing.T) {
	archive, err := txtar.ParseFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	var turns []string
	for _, f := range archive.Files {
		files[f.Name] = string(f.Data)
		if turn, ok := strings.CutSuffix(f.Name, "/request"); ok {
			turns = append(turns, turn)
		}
	}
	if len(turns) < 4 {
		t.Fatalf("only %d turns", len(turns))
	}
	each(t, func(t *testing.T, a api) {
		server, m := a.start(t, llm.Server{})
		for i, turn := range turns {
			req := request(t, files[turn+"/request"])
			for range 2 { // the same bytes every time
				if got := generate(t.Context(), t, m, req); got.err != nil {
					t.Fatalf("turn %s: %v", turn, got.err)
				}
			}
			sent := server.Requests()
			if again := sent[2*i+1].Body; !bytes.Equal(sent[2*i].Body, again) {
				t.Errorf("turn %s is not the same twice:\n%s\n%s", turn, sent[2*i].Body, again)
			}
			got := canonical(t, sent[2*i].Body)
			if name := turn + "/" + a.name; *update {
				files[name] = got
			} else if diff := cmp.Diff(files[name], got); diff != "" {
				t.Errorf("%s:\n%s", name, diff)
			}
		}
	})
	if !*update {
		return
	}
	archive.Files = nil
	for _, turn := range turns {
		for _, name := range []string{"request", "openai", "anthropic"} {
			archive.Files = append(archive.Files, txtar.File{Name: turn + "/" + name, Data: []byte(files[turn+"/"+name])})
		}
	}
	if err := os.WriteFile(golden, txtar.Format(archive), 0o644); err != nil {
		t.Fatal(err)
	}
}

func request(t *testing.T, text string) (req dialog.Request) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&req); err != nil {
		t.Fatal(err)
	}
	return req
}

// canonical is JSON with its keys in order, one to a line.
func canonical(t *testing.T, body []byte) string {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestStablePrefix compares the bytes before the messages of the turn, over a chat.
func TestStablePrefix(t *testing.T) {
	each(t, func(t *testing.T, a api) {
		server, m := a.start(t, llm.Server{})
		if _, err := llmtest.Chat(t.Context(), m, llmtest.Rail, 12); err != nil {
			t.Fatal(err)
		}
		var before []byte
		for i, r := range server.Requests() {
			var body struct{ Tools, System, Messages json.RawMessage }
			if err := json.Unmarshal(r.Body, &body); err != nil {
				t.Fatal(err)
			}
			prefix := bytes.Join([][]byte{body.Tools, body.System, body.Messages}, nil)
			at := bytes.Index(prefix, []byte("[System context"))
			if at < 0 {
				t.Fatalf("turn %d has no ghost", i)
			}
			prefix = bytes.ReplaceAll(prefix[:at], []byte(`,"cache_control":{"type":"ephemeral"}`), nil)
			prefix = bytes.ReplaceAll(prefix, []byte(`"cache_control":{"type":"ephemeral"},`), nil)
			// The last few bytes only begin the message of the ghost.
			end := bytes.LastIndexByte(prefix, '}') + 1
			if !bytes.HasPrefix(prefix, before) || len(prefix[:end]) <= len(before) {
				t.Fatalf("turn %d changes what was said before:\n%s\n%s", i, before, prefix[:end])
			}
			before = bytes.Clone(prefix[:end])
		}
	})
}
