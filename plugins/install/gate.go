// Package install brings plugins from elsewhere into the user's directory, and decides which of the plugins there may be
// loaded: those whose signature and permissions their owner has agreed to. It runs nothing of a plugin's.
package install

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"bellbird/hooks"
	"bellbird/plugins"
	"bellbird/plugins/sign"
)

// Policy is what the owner has decided for all plugins.
type Policy struct {
	// AllowUnsigned lets in plugins that nobody signed, as if the owner had allowed it for each. They still ask for what
	// they may do. Default false.
	AllowUnsigned bool `toml:"allow_unsigned"`

	// OfficialKey is the public key, in hex, whose plugins are official. Default none.
	OfficialKey string `toml:"official_key"`
}

// A Gate decides which plugins may be loaded. It reads what it needs each time that it is asked, so that what is agreed to on
// the command line holds for an appliance that runs.
type Gate struct {
	Policy

	// Keys and Consents are the files of the keys that are trusted, and of what plugins were allowed.
	Keys, Consents string

	// Own says that the user's directory is one in which a developer works: his plugins need neither a signature nor consent.
	Own bool
}

// TrustDir is the directory, within that where it is kept which plugins are enabled, of the files of a Gate. It has its
// name for itself: other files there are called by the names of plugins.
const TrustDir = "trust"

// NewGate returns the gate with its files below the directory where it is kept which plugins are enabled.
func NewGate(p Policy, stateDir string) Gate {
	dir := filepath.Join(stateDir, TrustDir)
	return Gate{Policy: p, Keys: filepath.Join(dir, "keys.json"), Consents: filepath.Join(dir, "consent.json")}
}

// Check tells what is wrong with the policy itself.
func (p Policy) Check() error {
	if p.OfficialKey == "" {
		return nil
	}
	if _, err := sign.ParsePublic(p.OfficialKey); err != nil {
		return fmt.Errorf("official_key: %w", err)
	}
	return nil
}

// Admit is for plugins.Options: it says whose a plugin is, and if it may not be loaded why, and what helps.
func (g Gate) Admit(i plugins.Info) (origin string, err error) {
	if i.Dir == "" {
		return "built in", nil
	}
	d, r, err := g.examine(i.Dir)
	if err != nil {
		return "", err
	}
	origin = Origin(r)
	if r.State == sign.Tampered {
		return origin, tampered(r)
	}
	if i.Band == hooks.System || g.Own {
		return origin, nil // they came with the appliance, or are the developer's own
	}
	return origin, g.admit(d, r)
}

// examine reads what a plugin asks for, and whose it is.
func (g Gate) examine(dir string) (*declared, sign.Result, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, sign.Result{}, err
	}
	defer root.Close()
	text, err := readManifest(root.FS())
	if err != nil {
		return nil, sign.Result{}, err
	}
	d, err := declare(text)
	if err != nil {
		return nil, sign.Result{}, fmt.Errorf("%s: %w", filepath.Join(dir, manifestName), err)
	}
	r, err := g.verify(root.FS())
	return d, r, err
}

func (g Gate) verify(files fs.FS) (sign.Result, error) {
	authors, err := sign.ReadKeys(g.Keys)
	if err != nil {
		return sign.Result{}, err
	}
	return sign.Keys{Official: g.OfficialKey, Authors: authors}.Verify(files), nil
}

func (g Gate) admit(d *declared, r sign.Result) error {
	all, err := readConsents(g.Consents)
	if err != nil {
		return err
	}
	var c *Consent
	if given, ok := all[d.Name]; ok {
		c = &given
	}
	remedy := fmt.Sprintf(`"bellbird plugin consent %s" asks`, d.Name)
	switch {
	case r.State == sign.Unknown:
		return unknown(r)
	case r.State == sign.Unsigned && !g.AllowUnsigned && (c == nil || !c.Unsigned):
		return unsigned("consent " + d.Name)
	case c == nil:
		return errors.New("you have not agreed to what it may do: " + remedy)
	}
	if other := c.otherSigner(signer(r)); other != "" {
		return fmt.Errorf("%s: %s", other, remedy)
	}
	if more := c.beyond(d); len(more) > 0 {
		return fmt.Errorf("it asks for more than you agreed to (%s): %s", list(more), remedy)
	}
	return nil
}

// signer is the key of a signature that counts.
func signer(r sign.Result) string {
	if r.State == sign.Official || r.State == sign.Verified {
		return r.Key
	}
	return ""
}

// Origin says in words what is known of where a plugin comes from.
func Origin(r sign.Result) string {
	if r.State == sign.Verified {
		return fmt.Sprintf("signed by %s", r.Author)
	}
	return string(r.State)
}

func tampered(r sign.Result) error {
	return fmt.Errorf(`it is not as it was signed: %w. Install it anew; if it is yours, sign it again with "bellbird plugin sign", or remove its %s`, r.Err, sign.Name)
}

func unknown(r sign.Result) error {
	return fmt.Errorf(`%w: if you know whose it is, "bellbird plugin trust NAME KEY" trusts all that its author signs`, r.Err)
}

func unsigned(command string) error {
	return fmt.Errorf(`nobody signed it: if it is yours, or you trust it as it is, run "bellbird plugin %s --allow-unsigned"; `+
		`allow_unsigned = true under [plugins] lets in all`, command)
}

const manifestName = "plugin.json"
