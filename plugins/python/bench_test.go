package python_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"bellbird/hooks"
	"bellbird/plugins/python"
)

// BenchmarkHandler is a fire through a warm worker, which should cost less than 300 µs.
func BenchmarkHandler(b *testing.B) {
	u := load(b, newRuntime(b, python.Options{}), newOwner("p"), `
FIXES = {"saphire": "Sapphire", "hey i": "AI", "tea tea ess": "TTS"}
def post_stt(event):
    text = event.input
    for wrong, right in FIXES.items():
        text = text.replace(wrong, right)
    event.input = text
`)
	r := hooks.New(hooks.Options{System: "powers"})
	defer r.Close()
	if err := r.Register(hooks.Handler{Plugin: "p", Point: "post_stt", Func: function(b, u, "post_stt")}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		e := &hooks.Event{Input: "what time is it, saphire", ChatName: hooks.String("kitchen")}
		r.Fire(context.Background(), "post_stt", e)
		if e.Input != "what time is it, Sapphire" {
			b.Fatal(e.Input)
		}
	}
}

// BenchmarkTools is a fire of tools_filter with as many tools as a model is given, all of which are sent both ways.
func BenchmarkTools(b *testing.B) {
	u := load(b, newRuntime(b, python.Options{}), newOwner("p"), "def tools_filter(event):\n    event.tools = [t for t in event.tools if t['function']['name'] != 'x']\n")
	f := function(b, u, "tools_filter")
	var tools []map[string]any
	for range 30 {
		tools = append(tools, map[string]any{"type": "function", "function": map[string]any{
			"name": "set_light", "description": "Sets a light of a room to a brightness and a colour.", "parameters": map[string]any{
				"type": "object", "required": []any{"room"}, "properties": map[string]any{
					"room": map[string]any{"type": "string", "description": "which one"}, "brightness": map[string]any{"type": "integer", "minimum": 0.0, "maximum": 100.0},
				},
			},
		}})
	}
	for b.Loop() {
		if err := f(context.Background(), &hooks.Event{Tools: tools}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAudio is a chunk of two seconds at 16 kHz on its way through a worker.
func BenchmarkAudio(b *testing.B) {
	u := load(b, newRuntime(b, python.Options{}), newOwner("p"), "def tts_chunk_audio(event):\n    event.metadata['audio']['audio_bytes'] += b''\n")
	f := function(b, u, "tts_chunk_audio")
	sound := make([]byte, 64_000)
	for b.Loop() {
		if err := f(context.Background(), &hooks.Event{Metadata: map[string]any{"audio": map[string]any{"audio_bytes": sound}}}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStart is what the first handler of a plugin takes to be loaded. It also tells how much memory a worker has.
func BenchmarkStart(b *testing.B) {
	r := newRuntime(b, python.Options{})
	load(b, r, newOwner("first"), "") // finds the interpreter
	var resident float64
	for b.Loop() {
		owner := newOwner("p")
		u := load(b, r, owner, "import os\ndef handle(event): event.metadata['pid'] = os.getpid()\n")
		e := new(hooks.Event)
		if err := function(b, u, "x")(context.Background(), e); err != nil {
			b.Fatal(err)
		}
		resident = residentMemory(b, int(e.Metadata["pid"].(float64)))
		r.Release(owner)
	}
	b.ReportMetric(resident, "MB/worker")
}

// residentMemory is what a process has of its own, in MB: not what it shares with others that run the same program.
func residentMemory(b *testing.B, pid int) (mb float64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0 // not on this system
	}
	for line := range strings.Lines(string(text)) {
		var name string
		var kb float64
		if n, _ := fmt.Sscan(line, &name, &kb); n == 2 && strings.HasPrefix(name, "Private_") {
			mb += kb / 1024
		}
	}
	return mb
}
