package plugins

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"bellbird/internal/atomicfile"
)

// This file is what a user decided about his integrations (see plugins/mcp). It is in a file and not in the store, so that
// it can be changed while the appliance doesn't run.

// A Consent is what an integration asks for, and, once it is in a Ledger, what its user has agreed to. Whatever shows it
// to him must show all of it.
type Consent struct {
	Permissions []string `json:"permissions"` // kind and scope: "transcript:agent"
	Hooks       []string `json:"hooks"`       // "transcript", "dictation", "preToolUse", "postToolUse", "turnComplete"
	Apps        []string `json:"apps"`        // for each hook what must be in front for it: "dictation:notes", or "transcript:*"
	Server      string   `json:"server"`      // the command that is run, or the address that it all is sent to
	Private     bool     `json:"private"`     // it is also called in private chats
	Hash        string   `json:"hash"`        // of the manifest: SHA-256, in hexadecimal
}

// Beyond is what c asks for beyond what was agreed to, for people to read. There is none if only other things in the
// manifest have changed.
func (c Consent) Beyond(agreed Consent) []string {
	var more []string
	add := func(what string, wants, has []string) {
		for _, w := range wants {
			hook, _, _ := strings.Cut(w, ":")
			if !slices.Contains(has, w) && !(what == "while in front" && slices.Contains(has, hook+":*")) {
				more = append(more, what+" "+w)
			}
		}
	}
	add("the permission", c.Permissions, agreed.Permissions)
	add("the hook", c.Hooks, agreed.Hooks)
	add("while in front", c.Apps, agreed.Apps)
	if c.Server != agreed.Server {
		more = append(more, "the server "+c.Server)
	}
	if c.Private && !agreed.Private {
		more = append(more, "private chats")
	}
	return more
}

// A Decision is what a user decided about one integration. The zero value is that of one he has never seen.
type Decision struct {
	Agreed   *Consent `json:"agreed,omitempty"`   // nil: he hasn't
	Silenced bool     `json:"silenced,omitempty"` // its transcript access is off: none of its hooks is called
}

// A Ledger has the decisions in a file. It may be used by several goroutines.
type Ledger struct {
	path string
	mu   sync.Mutex
}

// LedgerName is the ledger's file in the directory where it is kept which plugins are enabled.
const LedgerName = "integrations.json"

const maxLedger = 4 << 20 // bytes

// NewLedger returns the ledger in the file of that path, which need not be there yet.
func NewLedger(path string) *Ledger { return &Ledger{path: path} }

// Of is what was decided about the named integration.
func (l *Ledger) Of(name string) (Decision, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all, err := l.read()
	return all[name], err
}

// Agree notes that the user agreed to what an integration asks for, in place of what he agreed to before.
func (l *Ledger) Agree(name string, c Consent) error {
	return l.change(name, func(d *Decision) { d.Agreed = &c })
}

// Silence switches the transcript access of an integration off, or on again.
func (l *Ledger) Silence(name string, silenced bool) error {
	return l.change(name, func(d *Decision) { d.Silenced = silenced })
}

// Forget forgets an integration, which then must ask anew.
func (l *Ledger) Forget(name string) error {
	return l.change(name, func(d *Decision) { *d = Decision{} })
}

func (l *Ledger) change(name string, f func(*Decision)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	all, err := l.read()
	if err != nil {
		return err
	}
	d := all[name]
	f(&d)
	all[name] = d
	if d == (Decision{}) {
		delete(all, name)
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(l.path, text, 0o600)
}

// read reads the file. What can't be understood is an error, and nobody has agreed to anything.
func (l *Ledger) read() (map[string]Decision, error) {
	all := make(map[string]Decision)
	f, err := os.Open(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	} else if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxLedger))
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: delete it, and all integrations ask again", l.path, err)
	}
	if all == nil { // the file says null
		all = make(map[string]Decision)
	}
	return all, nil
}
