package install

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"bellbird/internal/atomicfile"
)

// A Consent is what the owner agreed to when he let a plugin in.
type Consent struct {
	Manifest    string   `json:"manifest"`           // SHA-256 of its plugin.json, in hex
	Permissions []string `json:"permissions"`        // the identities
	Signer      string   `json:"signer,omitempty"`   // the public key of who signed it, in hex; "": nobody
	Unsigned    bool     `json:"unsigned,omitempty"` // he lets it in although nobody signed it
}

// consentFile is how consents lie in a file: not in the store, so that one can be given while the appliance doesn't run.
type consentFile struct {
	Plugins map[string]Consent `json:"plugins"` // by name
}

// readConsents reads all consents. A file that isn't there has none.
func readConsents(path string) (map[string]Consent, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var f consentFile
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, fmt.Errorf("what plugins were allowed can't be read: %s: %w; remove the file, and each plugin asks again", path, err)
	}
	return f.Plugins, nil
}

// changeConsents replaces the consents by what change makes of them.
func changeConsents(path string, change func(map[string]Consent)) error {
	all, err := readConsents(path)
	if err != nil {
		return err
	}
	if all == nil {
		all = make(map[string]Consent)
	}
	change(all)
	text, err := json.MarshalIndent(consentFile{all}, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(path, append(text, '\n'), 0o644)
}

// beyond are the permissions that a plugin asks for and the consent doesn't cover.
func (c *Consent) beyond(d *declared) []Permission {
	if c == nil {
		return d.permissions
	}
	if c.Manifest == d.hash {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(d.permissions), func(p Permission) bool { return slices.Contains(c.Permissions, p.ID) })
}

// otherSigner says how the signature differs from that of which the consent is; "" if it doesn't.
func (c *Consent) otherSigner(key string) string {
	switch {
	case c == nil || c.Signer == key || c.Signer == "": // to be signed now is no loss
		return ""
	case key == "":
		return "it was signed when you allowed it, and is not any more"
	}
	return fmt.Sprintf("it was signed with the key %s when you allowed it, and now is with %s", c.Signer, key)
}

// list names permissions in a line.
func list(all []Permission) string { return plain(strings.Join(identities(all), ", ")) }
