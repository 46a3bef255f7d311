package ota

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode"
)

// The file that a server offers a release with: a line with a signature, and then what is signed, byte for byte, which is
// JSON.
//
//	bellbird-update 1 SIGNATURE
//	{"channel": "stable", "version": "1.3.0", …}
//
// One file, and not two: between two a server could change from one release to the next. A field that isn't known is
// ignored, so that newer releases may tell more; one that devices must not ignore needs another number in the first line.

const (
	manifestMagic = "bellbird-update 1 "
	maxManifest   = 16 << 10 // bytes
	maxText       = 2000     // of each text in it
	maxBundle     = 4 << 30  // bytes
)

// A Release is what can be installed.
type Release struct {
	Channel string `json:"channel"`
	Version string `json:"version"`

	// Size, in bytes, and SHA256, in hexadecimal, are those of the bundle at URL. That may be relative to the address of
	// the manifest.
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	URL    string `json:"url"`

	// Compatible is the board that it is made for, as RAUC's configuration names it.
	Compatible string `json:"compatible"`

	// Minimum is the oldest version from which one may go to this one; "" is any.
	Minimum string `json:"minimum_version,omitempty"`

	// What people are told of it.
	Title    string `json:"title,omitempty"`
	Summary  string `json:"summary,omitempty"`
	NotesURL string `json:"notes_url,omitempty"`
}

// ErrSignature is returned for a manifest that is not signed with the configured key.
var ErrSignature = errors.New("its signature is not one of public_key in [ota]: the server offers something else than what your publisher has signed, or the key has changed")

// ParseManifest checks a manifest's signature and what is in it. Relative addresses are taken to be relative to base.
func ParseManifest(text []byte, key ed25519.PublicKey, base *url.URL) (*Release, error) {
	if len(text) > maxManifest {
		return nil, fmt.Errorf("it has more than %d bytes", maxManifest)
	}
	first, signed, _ := bytes.Cut(text, []byte("\n"))
	encoded, ok := strings.CutPrefix(string(first), manifestMagic)
	if !ok {
		return nil, fmt.Errorf("it doesn't begin with %q: is this the address of a manifest, and is it meant for this version?", manifestMagic)
	}
	signature, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || !ed25519.Verify(key, signed, signature) {
		return nil, ErrSignature
	}
	r := new(Release)
	if err := json.Unmarshal(signed, r); err != nil {
		return nil, err
	}
	return r, r.check(base)
}

// check holds a release against what every one must have, and makes its address absolute.
func (r *Release) check(base *url.URL) error {
	for _, s := range []string{r.Channel, r.Version, r.SHA256, r.URL, r.Compatible, r.Minimum, r.Title, r.Summary, r.NotesURL} {
		if len(s) > maxText || strings.ContainsFunc(s, unicode.IsControl) {
			return fmt.Errorf("it has a text of more than %d bytes, or with characters that aren't printable", maxText)
		}
	}
	if _, ok := parseVersion(r.Version); !ok {
		return fmt.Errorf("version %q is none", r.Version)
	}
	if _, ok := parseVersion(r.Minimum); !ok && r.Minimum != "" {
		return fmt.Errorf("minimum_version %q is none", r.Minimum)
	}
	if r.Size <= 0 || r.Size > maxBundle {
		return fmt.Errorf("size %d: it must be 1 to %d bytes", r.Size, int64(maxBundle))
	}
	if sum, err := hex.DecodeString(r.SHA256); err != nil || len(sum) != 32 {
		return fmt.Errorf("sha256 %q: it must be 64 hexadecimal digits", r.SHA256)
	}
	if r.Compatible == "" || r.Channel == "" {
		return errors.New("compatible and channel must be there")
	}
	at, err := base.Parse(r.URL)
	if err != nil || r.URL == "" || !fetchable(at) {
		return fmt.Errorf("url %q: it must be an address with http or https, or relative to that of the manifest", r.URL)
	}
	r.URL = at.String()
	if notes, err := url.Parse(r.NotesURL); r.NotesURL != "" && (err != nil || !fetchable(notes)) {
		return fmt.Errorf("notes_url %q: it must be an address with http or https", r.NotesURL)
	}
	r.SHA256 = strings.ToLower(r.SHA256)
	return nil
}

func fetchable(u *url.URL) bool { return (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" }

// parseKey reads a public key: 32 bytes in base64.
func parseKey(s string) (ed25519.PublicKey, error) {
	key, err := base64.StdEncoding.Strict().DecodeString(strings.TrimSpace(s))
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("public_key: it must be the %d bytes of an ed25519 key in base64: deploy/rauc/publish.sh makes one", ed25519.PublicKeySize)
	}
	return key, nil
}

// Refusals of a release. A user may ask for one that is refused as ErrOlder nevertheless.
var (
	ErrOlder      = errors.New("it is not newer than what is installed")
	ErrWrongBoard = errors.New("it is made for another board")
	ErrTooOld     = errors.New("what is installed is too old for it")
	ErrRefused    = errors.New("it was tried and had to be gone back from")
)

// fits tells whether a release is meant for this device.
func (r *Release) fits(channel, compatible string) error {
	if r.Channel != channel {
		return fmt.Errorf("the manifest is of channel %q, and %q is configured: correct url or channel in [ota]", r.Channel, channel)
	}
	return fitsBoard(r.Version, r.Compatible, compatible)
}

func fitsBoard(version, for_, compatible string) error {
	if for_ == compatible {
		return nil
	}
	return fmt.Errorf("version %s: %w (%q; this is %q): take the one for this board", version, ErrWrongBoard, for_, compatible)
}

// follows tells whether version may be installed over installed.
func follows(version, minimum, installed string, downgrade bool) error {
	if minimum != "" && compare(installed, minimum) < 0 {
		return fmt.Errorf("version %s: %w (%s, and it needs %s): install version %[4]s first", version, ErrTooOld, installed, minimum)
	}
	if compare(version, installed) <= 0 && !downgrade {
		return fmt.Errorf("version %s: %w (%s): to have it nevertheless, use \"bellbird ota install --downgrade\"", version, ErrOlder, installed)
	}
	return nil
}
