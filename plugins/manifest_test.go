package plugins

import (
	"encoding/json"
	"testing"
)

func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"name":"p","capabilities":{"hooks":{"pre_chat":"a.star"},"voice_commands":[{"triggers":["x"],"handler":"a.star"}]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if m, err := ParseManifest(text); err == nil && m.Name == "" {
			t.Error("a plugin without a name")
		}
	})
}

func TestNetworkOfAManifest(t *testing.T) {
	for host, ok := range map[string]bool{
		"ha.local:8123": true, "ha-server": true, "192.168.1.7": true, "[fd00::1]:80": true, "*.example.org": true, "API.example.org": true,
		"": false, "*": false, "*.org": false, "a.*.org": false, "*.192.168.1.7:x": false, "http://ha.local": false, "ha.local/api": false,
		"ha.local:0": false, "ha.local:http": false, "*.1.2.3.4/8": false, "user@host": false,
	} {
		text, err := json.Marshal(map[string]any{"name": "p", "network": []string{host}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseManifest(text); (err == nil) != ok {
			t.Errorf("%q: error %v", host, err)
		}
	}
}
