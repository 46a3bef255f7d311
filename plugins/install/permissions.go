package install

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"bellbird/hooks"
	"bellbird/plugins"
)

// A Permission is one thing that a plugin is or does by its manifest, and what that means to people: each text completes
// the heading of its part of the sheet, and is "" if there is nothing to say.
type Permission struct {
	ID string // such as "hook:post_stt": what is kept of it

	Hears, Changes, Connects, Does string
}

// A declared manifest is one with what it asks for.
type declared struct {
	*plugins.Manifest
	hash        string // SHA-256 of the file, in hex
	permissions []Permission
}

// declare reads a manifest for what it asks for. A name that is there twice is an error: one reader takes the first, the
// other the last, and the user agrees to one of them.
func declare(text []byte) (*declared, error) {
	m, err := plugins.ParseManifest(text)
	if err != nil {
		return nil, err
	}
	if err := onlyOnce(bytes.TrimPrefix(text, []byte("\ufeff"))); err != nil {
		return nil, err
	}
	p, err := permissions(m, text)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	return &declared{m, hex.EncodeToString(sum[:]), p}, nil
}

// points says what the handlers of a point hear and change.
var points = map[string]Permission{
	"on_wake":          {Hears: "that you called, before you speak"},
	"post_stt":         {Hears: "everything that you say", Changes: "what you said, before anything is made of it; it can also end the turn"},
	"pre_chat":         {Hears: "everything that you say", Changes: "what you said; it can also answer in the model's place"},
	"dictation":        {Hears: "what you dictate", Changes: "what you dictated, before it is delivered; it can also keep it from being delivered"},
	"prompt_inject":    {Changes: "the instructions that the model has"},
	"ghost_inject":     {Hears: "everything that you say", Changes: "what the model is told beside your words, which you don't see"},
	"tools_filter":     {Changes: "which tools the model has: it can take some away"},
	"pre_execute":      {Hears: "which tools are used, and for what", Changes: "what tools are told; it can also keep them from running"},
	"post_execute":     {Hears: "what tools answer", Changes: "what tools answer"},
	"post_llm":         {Hears: "every answer, with what you said", Changes: "answers, before they are kept"},
	"post_chat":        {Hears: "every answer, with what you said"},
	"tts_stream_start": {Changes: "whether an answer is spoken"},
	"tts_chunk_text":   {Hears: "what is spoken to you", Changes: "what is spoken to you"},
	"tts_chunk_audio":  {Hears: "the sound of what is spoken to you", Changes: "the sound of what is spoken to you"},
	"tts_stream_end":   {Hears: "when an answer was spoken"},
	"pre_tts":          {Hears: "what is spoken to you", Changes: "what is spoken to you"},
	"post_tts":         {Hears: "what was spoken to you"},

	"plugins_ready":     {},
	"provider_switched": {Hears: "which model answers"},
	"chat_renamed":      {Hears: "the names of chats, as they change"},
	"chat_deleted":      {Hears: "which chats you delete"},
	"chat_cleared":      {Hears: "which chats you clear"},
	"chat_vaulted":      {Hears: "which chats you make private"},
	"vault_locked":      {Hears: "when the vault is locked"},
	"vault_unlocked":    {Hears: "when the vault is opened"},
}

const systemWords = "use the appliance: speak, set the volume and the voice, switch hearing on and off, show colours, ask the model, " +
	"and read, make, rename and clear chats"

// What of a manifest needs no consent: it describes the plugin, or can only make it do less. What is not known isn't here.
var (
	harmless = strings.Fields("name version description author url icon emoji short_display_name display_name short_name priority " +
		"default_enabled surfaces essential managed_hide settingsUI min_core_version requires_plugins homepage license keywords summary")
	harmlessCapabilities = strings.Fields("settings")
)

// others are parts of manifests that mean something in words. Those that aren't here are shown as they are.
var others = map[string]string{
	"schedule": "run by itself at certain times",
	"daemon":   "run all the time in the background",
}

// permissions are what a manifest asks for, sorted by their identities. Those of unknown fields are among them: a runtime
// may know them.
func permissions(m *plugins.Manifest, text []byte) ([]Permission, error) {
	var all []Permission
	system := len(m.Capabilities.VoiceCommands) > 0
	for point := range m.Capabilities.Hooks {
		p, known := points[point]
		if !known {
			p = Permission{Hears: fmt.Sprintf("what another plugin says at %q", point)}
		}
		p.ID = "hook:" + point
		all = append(all, p)
		i := slices.IndexFunc(hooks.Points(), func(h hooks.Point) bool { return h.Name == point })
		system = system || i >= 0 && hooks.Points()[i].System
	}
	for _, c := range m.Capabilities.VoiceCommands {
		when := map[hooks.Mode]string{"exact": "is", "starts_with": "begins with", "contains": "has", "regex": "matches"}[c.Match]
		for _, t := range c.Triggers {
			all = append(all, Permission{
				ID: fmt.Sprintf("command:%s:%s", c.Match, t), Hears: fmt.Sprintf("what you say, when it %s %q", cmp.Or(when, "is"), t),
				Changes: "what you said then; it can also answer in the model's place",
			})
		}
	}
	if system {
		all = append(all, Permission{ID: "system", Does: systemWords})
	}
	if len(m.Capabilities.Tools) > 0 {
		all = append(all, Permission{ID: "tools", Hears: "what the model tells its tools", Does: "offer tools to the model"})
	}
	for _, h := range m.Network {
		words := h
		if domain, ok := strings.CutPrefix(h, "*."); ok {
			words = "any name below " + domain
		}
		all = append(all, Permission{ID: "network:" + strings.ToLower(h), Connects: words})
	}
	if m.PrivacyAware {
		all = append(all, Permission{ID: "privacy_aware", Hears: "all of this in private chats too"})
	}
	for _, point := range m.FailClosed {
		all = append(all, Permission{ID: "fail_closed:" + point, Does: fmt.Sprintf("block what goes on at %s, when it fails", point)})
	}

	var top, capabilities map[string]any
	if err := json.Unmarshal(bytes.TrimPrefix(text, []byte("\ufeff")), &top); err != nil {
		return nil, err
	}
	capabilities, _ = top["capabilities"].(map[string]any)
	known := slices.Concat(harmless, strings.Fields("network privacy_aware fail_closed capabilities"))
	add := func(prefix string, fields map[string]any, known []string) {
		for name, v := range fields {
			if !slices.Contains(known, name) && !empty(v) {
				all = append(all, other(prefix+name, name, v))
			}
		}
	}
	add("", top, known)
	add("capabilities.", capabilities, slices.Concat(harmlessCapabilities, strings.Fields("hooks voice_commands tools")))

	slices.SortFunc(all, func(a, b Permission) int { return strings.Compare(a.ID, b.ID) })
	return slices.CompactFunc(all, func(a, b Permission) bool { return a.ID == b.ID }), nil
}

// other is the permission of a field that only its runtime knows: another value is another permission.
func other(path, name string, v any) Permission {
	text, err := json.Marshal(v) // sorted, and it came from JSON
	if err != nil {
		text = []byte("?")
	}
	sum := sha256.Sum256(text)
	p := Permission{ID: path + ":" + hex.EncodeToString(sum[:8]), Does: others[name]}
	if p.Does == "" {
		p.Does = fmt.Sprintf("do what it says under %q: %s", path, cut(string(text), 120))
	}
	return p
}

// cut shortens a text for people.
func cut(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// identities are what is kept of permissions.
func identities(all []Permission) []string {
	ids := []string{}
	for _, p := range all {
		ids = append(ids, p.ID)
	}
	return ids
}

// onlyOnce checks that no object of a JSON text has a name twice, in whatever case.
func onlyOnce(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	var objects []map[string]bool // nil: an array
	for key := false; ; {
		t, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		switch t {
		case json.Delim('{'):
			objects, key = append(objects, make(map[string]bool)), true
			continue
		case json.Delim('['):
			objects, key = append(objects, nil), false
			continue
		case json.Delim('}'), json.Delim(']'):
			objects = objects[:len(objects)-1]
		default:
			if name, ok := t.(string); ok && key {
				seen := objects[len(objects)-1]
				if seen[strings.ToLower(name)] {
					return fmt.Errorf("%q is there twice", name)
				}
				seen[strings.ToLower(name)] = true
				key = false
				continue
			}
		}
		key = len(objects) > 0 && objects[len(objects)-1] != nil
	}
}

// sorted returns the words that a set of permissions has for one heading, each once.
func words(all []Permission, of func(Permission) string) []string {
	set := make(map[string]bool)
	for _, p := range all {
		if w := of(p); w != "" {
			set[w] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}
