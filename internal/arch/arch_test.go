// Package arch holds the code against the import table of the architecture. A new edge is a line here, where a reader
// sees it.
package arch

import (
	"encoding/json"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// may says which of our own packages each package may import. A directory below an entry, such as an engine in its own
// package, may import what the entry may, and the entry itself. cmd/appliance may import everything.
var may = map[string][]string{
	"api":                   {"dialog", "event"},
	"audio":                 {},
	"audio/audiotest":       {"audio", "clock"},
	"audio/echo":            {"audio"},
	"audio/echo/compare":    {"audio", "audio/echo", "audio/echo/echotest", "wake"}, // beside the peers
	"audio/echo/echotest":   {"audio"},
	"audio/malgo":           {"audio"},
	"audio/malgo/malgotest": {"audio/malgo"}, // a sound server for tests
	"clock":                 {},
	"console":               {"hooks"},
	"deploy/device":         {}, // tests on the virtual device
	"deploy/device/agent":   {}, // the program within it
	"deploy/package/sbom":   {}, // a program for the build
	"dialog":                {},
	"dictation":             {"clock", "dialog", "event", "hooks", "tools"},
	"event":                 {},
	"intents":               {"dialog"},
	"ghost":                 {"hooks"},
	"gpio":                  {"clock", "event", "gpio/led", "gpio/ring"},
	"gpio/led":              {},
	"gpio/ring":             {"event", "gpio/led"},
	"hooks":                 {},
	"internal/arch":         {},
	"internal/atomicfile":   {},
	"internal/run":          {},
	"internal/speechapi":    {"dialog", "llm"}, // the address, the key and the faults are those of the model servers
	"internal/standby":      {},
	"llm":                   {"dialog"},
	"llm/offline":           {"dialog", "intents"}, // its knowledge of the language is the grammar
	"mqtt":                  {"event"},
	"ota":                   {"clock", "event"},
	"ota/otatest":           {"ota"},
	"pipeline":              {"audio", "clock", "dialog", "event", "ghost", "hooks", "spoken"},
	"plugins":               {"dialog", "hooks", "internal/atomicfile", "plugins/schedule", "tools"},
	"plugins/install":       {"hooks", "internal/atomicfile", "plugins", "plugins/sign"},
	"plugins/python":        {"plugins", "plugins/worker"},
	"plugins/review":        {"ghost", "plugins"},
	"plugins/runtimetest":   {"hooks", "plugins"},
	"plugins/schedule":      {"clock"},
	"plugins/sign":          {"internal/atomicfile"},
	"plugins/system":        {},                                       // scripts that are embedded
	"plugins/worker":        {"hooks", "plugins", "plugins/starlark"}, // both ends of the pipe
	"prompt":                {},
	"spoken":                {},
	"store":                 {"dialog"},
	"stt":                   {"audio", "internal/standby"},
	"stt/openai":            {"audio", "dialog", "internal/speechapi"},
	"stt/wyoming":           {"audio", "wyoming"},
	"timers":                {"clock", "event"},
	"tools":                 {"dialog"},
	"turns":                 {"event"},
	"tts":                   {"audio", "internal/standby"},
	"tts/openai":            {"audio", "dialog", "internal/speechapi", "tts"},
	"tts/wyoming":           {"audio", "tts", "wyoming"},
	"wake":                  {"audio", "wake/tflite"},
	"wake/compare":          {"audio", "wake", "wake/tflite"}, // a program beside the peers, not part of the appliance
	"wake/eval":             {"audio", "wake"},
	"wake/tflite":           {},
	"wyoming":               {"audio"},
}

// cgo is where C may be called: the sound card and the offline recogniser.
var cgo = []string{"audio/malgo", "stt/pocketsphinx"}

type pkg struct {
	ImportPath string
	Imports    []string
	CgoFiles   []string
	// Test files may use what they like, but not the product's wiring.
	TestImports, XTestImports []string
}

const module = "bellbird/"

func TestImports(t *testing.T) {
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		if name == "cmd/appliance" {
			continue
		}
		allowed, ok := entry(name)
		if !ok {
			t.Errorf("%s: not in the table", name)
			continue
		}
		for _, i := range p.Imports {
			i, ours := strings.CutPrefix(i, module)
			if ours && !slices.Contains(allowed, i) {
				t.Errorf("%s imports %s: not in the table", name, i)
			}
		}
		for _, i := range slices.Concat(p.TestImports, p.XTestImports) {
			if i == module+"cmd/appliance" {
				t.Errorf("a test of %s imports the wiring", name)
			}
		}
		if len(p.CgoFiles) > 0 && !slices.Contains(cgo, name) {
			t.Errorf("%s uses cgo in %v", name, p.CgoFiles)
		}
	}
}

// entry is what a package may import, from its own line of the table or that of the nearest directory above.
func entry(name string) (allowed []string, ok bool) {
	for dir := name; ; {
		if allowed, ok := may[dir]; ok {
			if dir != name {
				allowed = append(slices.Clone(allowed), dir)
			}
			return allowed, true
		}
		i := strings.LastIndexByte(dir, '/')
		if i < 0 {
			return nil, false
		}
		dir = dir[:i]
	}
}

func list(t *testing.T) []pkg {
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,CgoFiles,TestImports,XTestImports", module+"...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var pkgs []pkg
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
	if len(pkgs) < 10 {
		t.Fatalf("go list found only %d packages", len(pkgs))
	}
	return pkgs
}
