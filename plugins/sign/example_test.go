package sign_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"bellbird/plugins/sign"
)

// An author signs a plugin, and whoever trusts his key can tell that it is his, until a file of it changes.
func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	public, err := sign.Generate(filepath.Join(dir, "key.pem"))
	if err != nil {
		log.Fatal(err)
	}
	key, err := sign.ReadPrivate(filepath.Join(dir, "key.pem"))
	if err != nil {
		log.Fatal(err)
	}

	plugin := filepath.Join(dir, "weather")
	manifest := filepath.Join(plugin, "plugin.json")
	if err := os.Mkdir(plugin, 0o755); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(manifest, []byte(`{"name": "weather"}`), 0o644); err != nil {
		log.Fatal(err)
	}
	if err := sign.Sign(plugin, key); err != nil {
		log.Fatal(err)
	}

	trusted := sign.Keys{Authors: []sign.Key{{Name: "acme", Public: public}}}
	r := trusted.Verify(os.DirFS(plugin))
	fmt.Println(r.State, r.Author)

	if err := os.WriteFile(manifest, []byte(`{"name": "leather"}`), 0o644); err != nil {
		log.Fatal(err)
	}
	r = trusted.Verify(os.DirFS(plugin))
	fmt.Println(r.State, r.Err)
	// Output:
	// verified author acme
	// tampered plugin.json was changed after it was signed
}
