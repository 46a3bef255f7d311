package plugins

import "testing"

func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"name":"p","capabilities":{"hooks":{"pre_chat":"a.star"},"voice_commands":[{"triggers":["x"],"handler":"a.star"}]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if m, err := parseManifest(text); err == nil && m.Name == "" {
			t.Error("a plugin without a name")
		}
	})
}
