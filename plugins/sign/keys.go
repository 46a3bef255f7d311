package sign

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"bellbird/internal/atomicfile"
)

// A Key is the public key of an author who is trusted.
type Key struct {
	Name   string `json:"name"`
	Public string `json:"public_key_hex"`
}

// keyFile is the list of keys as it lies in a file.
type keyFile struct {
	Keys []Key `json:"keys"`
}

const privateType = "PRIVATE KEY"

// Generate makes a key to sign with, in a new file that only its owner can read, and returns the public key in hex.
func Generate(path string) (string, error) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return "", err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return "", err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("%s is there already: a key is not replaced, name another file", path)
	} else if err != nil {
		return "", err
	}
	err = pem.Encode(f, &pem.Block{Type: privateType, Bytes: der})
	return hex.EncodeToString(public), errors.Join(err, f.Sync(), f.Close())
}

// ReadPrivate reads a key to sign with.
func ReadPrivate(path string) (ed25519.PrivateKey, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s: others can read this key: run chmod 600 %s", path, path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != privateType {
		return nil, fmt.Errorf(`%s is no key to sign with: "bellbird plugin keygen" makes one`, path)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	private, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s: the key is not an ed25519 key", path)
	}
	return private, nil
}

// ParsePublic reads a public key in hex.
func ParsePublic(text string) (ed25519.PublicKey, error) {
	b, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(b) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("%.80q is no public key: one has %d hex digits", text, 2*ed25519.PublicKeySize)
	}
	return b, nil
}

// ReadKeys reads a list of keys: {"keys": [{"name": "…", "public_key_hex": "…"}]}. A file that isn't there has none.
func ReadKeys(path string) ([]Key, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var list keyFile
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("the keys that are trusted can't be read: %s: %w", path, err)
	}
	for _, k := range list.Keys {
		if _, err := ParsePublic(k.Public); err != nil {
			return nil, fmt.Errorf("the keys that are trusted can't be read: %s: %q: %w", path, k.Name, err)
		}
	}
	return list.Keys, nil
}

// AddKey adds a key to the list in a file. A name has one key, and a key one name.
func AddKey(path string, k Key) error {
	if strings.TrimSpace(k.Name) == "" {
		return errors.New("the key has no name")
	}
	if _, err := ParsePublic(k.Public); err != nil {
		return err
	}
	k.Public = strings.ToLower(strings.TrimSpace(k.Public))
	keys, err := ReadKeys(path)
	if err != nil {
		return err
	}
	for _, old := range keys {
		switch same := strings.EqualFold(old.Public, k.Public); {
		case old.Name == k.Name && same:
			return nil
		case old.Name == k.Name:
			return fmt.Errorf("%q has another key already: %s; stop trusting that one first", k.Name, old.Public)
		case same:
			return fmt.Errorf("this key is trusted already, as that of %q", old.Name)
		}
	}
	return writeKeys(path, append(keys, k))
}

// RemoveKey takes a key off the list in a file.
func RemoveKey(path, name string) error {
	keys, err := ReadKeys(path)
	if err != nil {
		return err
	}
	without := slices.DeleteFunc(slices.Clone(keys), func(k Key) bool { return k.Name == name })
	if len(without) == len(keys) {
		return fmt.Errorf("no key that is trusted is called %q", name)
	}
	return writeKeys(path, without)
}

func writeKeys(path string, keys []Key) error {
	text, err := json.MarshalIndent(keyFile{keys}, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(path, append(text, '\n'), 0o644)
}
