package plugins

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Scaffold begins a plugin in a new directory, whose last part is its name.
func Scaffold(dir string) error {
	name := filepath.Base(dir)
	if !namePattern.MatchString(name) {
		return fmt.Errorf("name %q: a plugin's name is made of a-z, 0-9, - and _, 64 at most", name)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	var errs []error
	for file, text := range map[string]string{
		manifestName: `{
  "name": "NAME",
  "version": "0.1.0",
  "description": "What it does, in a sentence.",
  "author": "you",
  "default_enabled": true,
  "capabilities": {
    "hooks": { "post_stt": "hooks.star" }
  }
}
`,
		"hooks.star": `# Called with what was recognised, before anything is made of it.
def post_stt(event):
    event.input = event.input.replace("bell bird", "Bellbird")
`,
		"tests/trials.json": `[
  {
    "name": "a mishearing",
    "point": "post_stt",
    "event": { "input": "ask bell bird" },
    "want": { "input": "ask Bellbird" }
  }
]
`,
	} {
		path := filepath.Join(dir, file)
		errs = append(errs, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(strings.ReplaceAll(text, "NAME", name)), 0o644))
	}
	return errors.Join(errs...)
}
