package main

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

// The configuration that the package installs changes nothing, and names every key there is.
func TestPackagedConfig(t *testing.T) {
	const path = "../../deploy/package/config.toml"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var c Config
	if err := c.decode(path, string(text)); err != nil {
		t.Fatal(err)
	}
	if !reflect.ValueOf(c).IsZero() {
		t.Errorf("as it is, it sets %+v", c)
	}

	all := regexp.MustCompile(`(?m)^#([a-z\[])`).ReplaceAllString(string(text), "$1")
	var full Config
	if err := full.decode(path, all); err != nil {
		t.Fatalf("with all keys: %v", err)
	}
	meta, err := toml.Decode(all, new(Config))
	if err != nil {
		t.Fatal(err)
	}
	there := make(map[string]bool)
	for _, k := range meta.Keys() {
		there[k.String()] = true
	}
	for _, k := range keysOf(reflect.TypeFor[Config](), "") {
		if !there[k] {
			t.Errorf("%s doesn't name %q: describe it there", path, k)
		}
	}

	// What it says to be defaults must be taken.
	file := t.TempDir() + "/config.toml"
	if err := os.WriteFile(file, []byte(all), 0o600); err != nil {
		t.Fatal(err)
	}
	f := flags{config: file}
	got, err := f.load()
	if err != nil {
		t.Fatal(err)
	}
	f.config = path
	defaults, err := f.load()
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Plugins.Sockets) == 0 {
		got.Plugins.Sockets = nil // as without the key
	}
	if *got.Volume != *defaults.Volume || *got.WakeSound != *defaults.WakeSound || !reflect.DeepEqual(got.Plugins, defaults.Plugins) || got.Store.Path != defaults.Store.Path ||
		!reflect.DeepEqual(got.Wake.ModelDirs, defaults.Wake.ModelDirs) {
		t.Errorf("it says that these are defaults:\n%+v\nbut they are\n%+v", got, defaults)
	}
}

// keysOf are the keys that decode into a struct, with those of the structs in it.
func keysOf(t reflect.Type, prefix string) (keys []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("toml"), ",")
		inner := f.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		_, isText := reflect.New(inner).Interface().(interface{ UnmarshalText([]byte) error })
		switch {
		case name == "-" || !f.IsExported():
		case f.Anonymous && name == "":
			keys = append(keys, keysOf(inner, prefix)...)
		case inner.Kind() == reflect.Struct && !isText:
			keys = append(keys, prefix+name)
			keys = append(keys, keysOf(inner, prefix+name+".")...)
		default:
			keys = append(keys, prefix+name)
		}
	}
	return keys
}
