package mcp

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"bellbird/plugins"
)

// A Manifest is the integration.json of an integration.
type Manifest struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Summary string `json:"summary"` // what it does and what it listens for
	Author  string `json:"author"`

	Server      Place           `json:"server"`
	Permissions []Permission    `json:"permissions"`
	Hooks       map[string]Hook `json:"hooks"` // by the names of the events

	// PrivacyAware says that it keeps nothing of what is said in private chats, and sends it nowhere. Without it its hooks
	// are not called in them.
	PrivacyAware bool `json:"privacy_aware"`

	Hash string `json:"-"` // SHA-256 of the file, in hexadecimal
}

// A Place is where the MCP server is: a command, which speaks on its standard input and output, or an address.
type Place struct {
	Command []string `json:"command,omitempty"`
	URL     string   `json:"url,omitempty"`
}

func (p Place) String() string {
	if p.URL != "" {
		return p.URL
	}
	return strings.Join(p.Command, " ")
}

// A Permission is a grant that is asked for.
type Permission struct {
	Kind  string `json:"kind"`  // "transcript"
	Scope string `json:"scope"` // "agent", "dictation" or "all"
}

// A Hook subscribes to an event.
type Hook struct {
	Apps  []string `json:"apps"`  // it is called only while one of them is in front; none: always
	Scope string   `json:"scope"` // of tool taps: "own"
}

// ManifestName is the file of the manifest in an integration's directory.
const ManifestName = "integration.json"

const (
	maxManifest = 256 << 10
	maxApps     = 64
	maxApp      = 200 // bytes of one
	maxCommand  = 4 << 10
)

var namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`)

// ReadManifest reads the manifest of the integration in dir, and checks all that can be checked without running it.
func ReadManifest(dir string) (*Manifest, error) {
	path := filepath.Join(dir, ManifestName)
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	if err != nil {
		return nil, err
	}
	m, err := ParseManifest(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// ParseManifest reads a manifest. An error begins with the field that is wrong.
func ParseManifest(text []byte) (*Manifest, error) {
	if len(text) > maxManifest {
		return nil, fmt.Errorf("larger than %d bytes", maxManifest)
	}
	m := new(Manifest)
	if err := json.Unmarshal(bytes.TrimPrefix(text, []byte("\ufeff")), m); err != nil {
		return nil, err
	}
	if !namePattern.MatchString(m.Name) {
		return nil, fmt.Errorf("name: %.50q: it is made of a-z, 0-9, - and _, 32 at most", m.Name)
	}
	if err := m.Server.check(); err != nil {
		return nil, err
	}
	granted := make(map[string]bool)
	for i, p := range m.Permissions {
		scopes, ok := map[string][]string{"agent": {"agent"}, "dictation": {"dictation"}, "all": {"agent", "dictation"}}[p.Scope]
		switch {
		case p.Kind != "transcript":
			return nil, fmt.Errorf(`permissions[%d].kind: %.50q: there is only "transcript"`, i, p.Kind)
		case !ok:
			return nil, fmt.Errorf(`permissions[%d].scope: %.50q: it is "agent", "dictation" or "all"`, i, p.Scope)
		}
		for _, s := range scopes {
			granted[s] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Hooks)) {
		if err := checkHook(name, m.Hooks[name], granted); err != nil {
			return nil, err
		}
	}
	sum := sha256.Sum256(text)
	m.Hash = hex.EncodeToString(sum[:])
	return m, nil
}

func (p Place) check() error {
	switch {
	case (len(p.Command) == 0) == (p.URL == ""):
		return errors.New("server: it needs a command or a url, and not both")
	case len(p.Command) > 0 && p.Command[0] == "":
		return errors.New("server.command[0]: no program is named")
	case len(strings.Join(p.Command, " ")) > maxCommand:
		return fmt.Errorf("server.command: longer than %d bytes", maxCommand)
	case p.URL == "":
		return nil
	}
	u, err := url.Parse(p.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || len(p.URL) > maxCommand {
		return fmt.Errorf("server.url: %.100q is no http or https address", p.URL)
	}
	if u.Scheme == "http" && !nearby(u.Hostname()) {
		return fmt.Errorf("server.url: %.100q: what is said would go through the internet in the clear: use https", p.URL)
	}
	return nil
}

// nearby reports whether a host is this machine or at home.
func nearby(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast()
	}
	return host == "localhost" || strings.HasSuffix(host, ".local") || strings.HasSuffix(host, ".home.arpa")
}

func checkHook(name string, h Hook, granted map[string]bool) error {
	e, ok := events[name]
	field := "hooks." + name
	switch {
	case !ok:
		return fmt.Errorf("%.60s: there is no such hook; there are %s", field, strings.Join(slices.Sorted(maps.Keys(events)), ", "))
	case len(granted) == 0:
		return fmt.Errorf("permissions: %s needs the permission transcript", field)
	case !granted[e.scope]:
		return fmt.Errorf(`%s: it needs the permission transcript with the scope %q or "all"`, field, e.scope)
	case e.tap && h.Scope != "" && h.Scope != "own":
		return fmt.Errorf(`%s.scope: %.50q: an integration sees its own tools only: "own"`, field, h.Scope)
	case !e.tap && h.Scope != "":
		return fmt.Errorf("%s.scope: only preToolUse and postToolUse have one", field)
	case name == "dictation" && len(h.Apps) == 0:
		return fmt.Errorf("%s.apps: nobody listens to all dictation: name the apps", field)
	case len(h.Apps) > maxApps:
		return fmt.Errorf("%s.apps: more than %d", field, maxApps)
	}
	for i, app := range h.Apps {
		if strings.TrimSpace(app) == "" || len(app) > maxApp || strings.ContainsAny(app, "*:") {
			return fmt.Errorf("%s.apps[%d]: %.50q is no name of an app", field, i, app)
		}
	}
	return nil
}

// Consent is what the integration asks its user for.
func (m *Manifest) Consent() plugins.Consent {
	c := plugins.Consent{Server: m.Server.String(), Private: m.PrivacyAware, Hash: m.Hash}
	for _, p := range m.Permissions {
		c.Permissions = append(c.Permissions, p.Kind+":"+p.Scope)
	}
	c.Hooks = slices.Sorted(maps.Keys(m.Hooks))
	for _, name := range c.Hooks {
		apps := m.Hooks[name].Apps
		if len(apps) == 0 {
			apps = []string{"*"}
		}
		for _, app := range apps {
			c.Apps = append(c.Apps, name+":"+app)
		}
	}
	return c
}
