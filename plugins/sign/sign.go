// Package sign signs the directories of plugins, and tells whose a plugin is and whether it was changed since. A signature
// is a file plugin.sig: the SHA-256 of each file, signed with ed25519. What is done with a plugin that isn't signed, or not
// by somebody who is trusted, is not decided here.
package sign

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"bellbird/internal/atomicfile"
)

// Name is the file in a plugin's directory that has its signature.
const Name = "plugin.sig"

const maxSignature = 1 << 20 // bytes of a plugin.sig

// A State is what is known of where a plugin comes from.
type State string

const (
	Official State = "official"        // signed with the official key, and unchanged
	Verified State = "verified author" // signed with the key of an author who is trusted, and unchanged
	Unsigned State = "unsigned"        // there is no signature
	Unknown  State = "unknown author"  // the files are those that were signed, but by nobody who is trusted
	Tampered State = "tampered"        // the signature can't be read, or the files are not those that were signed
)

// A Result is what the verification of a plugin came to.
type Result struct {
	State  State
	Author string // the name of the author's key, if State is Verified
	Key    string // the public key in hex that made the signature; "" if that is not known
	Err    error  // why State is Unknown or Tampered
}

// Keys are those whose signatures count. Without any all plugins that are signed have an unknown author.
type Keys struct {
	Official string // in hex; "" if there is none
	Authors  []Key
}

// A signature is what is in a plugin.sig.
type signature struct {
	signed []byte            // the bytes that were signed
	sig    []byte            // over them
	files  map[string]string // hashes by path
	key    string            // the public key in hex, if it says so; the format's first makers didn't
}

// Verify tells whose the plugin is that has these files. It reads every file, of which there may be MaxFiles with
// MaxBytes in all.
func (k Keys) Verify(files fs.FS) Result {
	text, err := readFile(files, Name, maxSignature)
	if errors.Is(err, fs.ErrNotExist) {
		return Result{State: Unsigned}
	}
	var s signature
	if err == nil {
		s, err = parse(text)
	}
	if err != nil {
		return Result{State: Tampered, Err: fmt.Errorf("%s: %w", Name, err)}
	}
	r := k.signer(&s)
	if r.State == Tampered {
		return r
	}
	if err := s.check(files); err != nil {
		return Result{State: Tampered, Key: r.Key, Err: err}
	}
	return r
}

// signer tells who made the signature, whatever the files are.
func (k Keys) signer(s *signature) Result {
	made := func(key string) bool {
		public, err := ParsePublic(key)
		return err == nil && ed25519.Verify(public, s.signed, s.sig)
	}
	if k.Official != "" && made(k.Official) {
		return Result{State: Official, Key: strings.ToLower(k.Official)}
	}
	for _, a := range k.Authors {
		if made(a.Public) {
			return Result{State: Verified, Author: a.Name, Key: strings.ToLower(a.Public)}
		}
	}
	switch {
	case s.key == "":
		return Result{State: Unknown, Err: errors.New("none of the keys that are trusted made its signature")}
	case !made(s.key):
		return Result{State: Tampered, Err: fmt.Errorf("%s: it is not what the key %s signed", Name, s.key)}
	}
	return Result{State: Unknown, Key: s.key, Err: fmt.Errorf("it is signed with the key %s, which is not trusted", s.key)}
}

// parse reads a plugin.sig.
func parse(text []byte) (s signature, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var all map[string]any
	if err := d.Decode(&all); err != nil {
		return s, err
	}
	if _, err := d.Token(); err != io.EOF {
		return s, errors.New("there is something after its end")
	}
	encoded, ok := all["signature"].(string)
	if !ok {
		return s, errors.New("it has no signature")
	}
	if s.sig, err = base64.StdEncoding.DecodeString(encoded); err != nil {
		return s, fmt.Errorf("signature: %w", err)
	}
	if len(s.sig) != ed25519.SignatureSize {
		return s, fmt.Errorf("signature: %d bytes, it should have %d", len(s.sig), ed25519.SignatureSize)
	}
	files, ok := all["files"].(map[string]any)
	if !ok || len(files) == 0 {
		return s, errors.New("it lists no files")
	}
	s.files = make(map[string]string, len(files))
	for path, v := range files {
		hash, _ := v.(string)
		digest, ok := strings.CutPrefix(hash, "sha256:")
		if b, err := hex.DecodeString(digest); !ok || err != nil || len(b) != 32 {
			return s, fmt.Errorf("files: %q: write sha256: and 64 hex digits", path)
		}
		if !fs.ValidPath(path) || path == "." || strings.ContainsFunc(path, func(r rune) bool { return r == '\\' || unicode.IsControl(r) }) {
			return s, fmt.Errorf("files: %q is no path, or outside of the plugin's directory", path)
		}
		s.files[path] = "sha256:" + strings.ToLower(digest)
	}
	if key, ok := all["key"].(string); ok {
		if _, err := ParsePublic(key); err != nil {
			return s, fmt.Errorf("key: %w", err)
		}
		s.key = strings.ToLower(key)
	}
	delete(all, "signature")
	s.signed, err = canonical(all)
	return s, err
}

// check holds the files against what was signed.
func (s *signature) check(files fs.FS) error {
	found, err := list(files)
	if err != nil {
		return err
	}
	left := int64(MaxBytes)
	for _, path := range slices.Sorted(maps.Keys(s.files)) {
		mode, ok := found[path]
		if !ok && !excluded(path) {
			return fmt.Errorf("%s was signed, and is not there", path)
		}
		delete(found, path)
		if mode&fs.ModeSymlink != 0 {
			return fmt.Errorf("%s is a link: a signed plugin has none", path)
		}
		hash, n, err := hash(files, path, left)
		if err != nil {
			return err
		}
		left -= n
		if hash != s.files[path] {
			return fmt.Errorf("%s was changed after it was signed", path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(found)) {
		switch mode := found[path]; {
		case mode&fs.ModeSymlink != 0:
			return fmt.Errorf("%s is a link: a signed plugin has none", path)
		case mustBeSigned(path, mode):
			return fmt.Errorf("%s was not there when the plugin was signed", path)
		}
	}
	return nil
}

// Sign signs the plugin in dir: all its files, as they are now. The signature takes the place of an earlier one.
func Sign(dir string, key ed25519.PrivateKey) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	text, err := readFile(root.FS(), "plugin.json", maxSignature)
	if err != nil {
		return err
	}
	var m struct{ Name, Version string }
	if err := json.Unmarshal(bytes.TrimPrefix(text, []byte("\ufeff")), &m); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(dir, "plugin.json"), err)
	}
	if m.Version == "" {
		m.Version = "0.0.0"
	}
	found, err := list(root.FS())
	if err != nil {
		return err
	}
	hashes := make(map[string]any)
	left := int64(MaxBytes)
	for path, mode := range found {
		if mode&fs.ModeSymlink != 0 {
			return fmt.Errorf("%s is a link: put the file itself in its place", filepath.Join(dir, path))
		}
		hash, n, err := hash(root.FS(), path, left)
		if err != nil {
			return err
		}
		left -= n
		hashes[path] = hash
	}
	all := map[string]any{
		"plugin": m.Name, "version": m.Version, "files": hashes, "key": hex.EncodeToString(key.Public().(ed25519.PublicKey)),
	}
	signed, err := canonical(all)
	if err != nil {
		return err
	}
	all["signature"] = base64.StdEncoding.EncodeToString(ed25519.Sign(key, signed))
	out, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, Name), append(out, '\n'), 0o644)
}
