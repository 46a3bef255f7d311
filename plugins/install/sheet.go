package install

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"bellbird/plugins/sign"
)

// A Sheet says what it means to let a plugin in, for its owner to agree or not.
type Sheet struct {
	Name, Version, Description, Author string

	Origin      string       // whose it is, in words
	Vouched     bool         // somebody who is trusted signed it
	Permissions []Permission // all that it asks for
	New         []Permission // of these, what its owner has not agreed to yet
	Agreed      bool         // to all of it, before: there is nothing to ask
	Signer      string       // how who signed it is another than when he agreed; "" if it is not

	gate Gate
	d    *declared
	r    sign.Result
}

// Sheet returns that of a plugin in a directory, which may not have been allowed yet.
func (g Gate) Sheet(dir string) (*Sheet, error) {
	d, r, err := g.examine(dir)
	if err != nil {
		return nil, err
	}
	switch r.State {
	case sign.Tampered:
		return nil, fmt.Errorf("plugin %q: %w", d.Name, tampered(r))
	case sign.Unknown:
		return nil, fmt.Errorf("plugin %q: %w", d.Name, unknown(r))
	}
	return g.sheet(d, r)
}

func (g Gate) sheet(d *declared, r sign.Result) (*Sheet, error) {
	all, err := readConsents(g.Consents)
	if err != nil {
		return nil, err
	}
	var c *Consent
	if given, ok := all[d.Name]; ok {
		c = &given
	}
	s := &Sheet{
		Name: d.Name, Version: d.Version, Description: d.Description, Author: d.Author,
		Origin: Origin(r), Vouched: signer(r) != "", Permissions: d.permissions, New: c.beyond(d), Signer: c.otherSigner(signer(r)),
		gate: g, d: d, r: r,
	}
	s.Agreed = c != nil && len(s.New) == 0 && s.Signer == ""
	return s, nil
}

// MayAgree reports why agreeing to the sheet would not be enough. A plugin that nobody signed needs that its owner allows
// it expressly, or that the policy does.
func (s *Sheet) MayAgree(allowUnsigned bool) error {
	if !s.Vouched && !allowUnsigned && !s.gate.AllowUnsigned {
		return fmt.Errorf("plugin %q: %w", s.Name, unsigned("consent "+s.Name))
	}
	return nil
}

// Agree keeps that the owner agreed.
func (s *Sheet) Agree(allowUnsigned bool) error {
	if err := s.MayAgree(allowUnsigned); err != nil {
		return err
	}
	return s.agree(allowUnsigned)
}

func (s *Sheet) agree(allowUnsigned bool) error {
	return changeConsents(s.gate.Consents, func(all map[string]Consent) {
		all[s.Name] = Consent{
			Manifest: s.d.hash, Permissions: identities(s.d.permissions), Signer: signer(s.r), Unsigned: !s.Vouched && allowUnsigned,
		}
	})
}

// Print writes the sheet. What is new since its owner agreed last has a +.
func (s *Sheet) Print(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: %s\n", s.Name, plain(s.Version), plain(s.Description))
	fmt.Fprintf(&b, "It says that it is by %s. ", plain(cmp.Or(s.Author, "nobody")))
	if s.Vouched {
		fmt.Fprintf(&b, "It is %s, and unchanged.\n", s.Origin)
	} else {
		b.WriteString("Nobody signed it: nobody vouches for what is in it.\n")
	}
	if s.Signer != "" {
		fmt.Fprintf(&b, "Beware: %s.\n", s.Signer)
	}
	fresh := len(s.New) > 0 && len(s.New) < len(s.Permissions)
	for _, part := range []struct {
		title, none string
		of          func(Permission) string
	}{
		{"It hears", "nothing", func(p Permission) string { return p.Hears }},
		{"It changes", "nothing", func(p Permission) string { return p.Changes }},
		{"It may connect to", "nothing: it has no network", func(p Permission) string { return p.Connects }},
		{"It may also", "", func(p Permission) string { return p.Does }},
	} {
		lines := words(s.Permissions, part.of)
		switch {
		case len(lines) > 0:
			fmt.Fprintf(&b, "%s\n", part.title)
		case part.none != "":
			fmt.Fprintf(&b, "%s %s\n", part.title, part.none)
		}
		old := words(slices.DeleteFunc(slices.Clone(s.Permissions), func(p Permission) bool {
			return slices.ContainsFunc(s.New, func(n Permission) bool { return n.ID == p.ID })
		}), part.of)
		for _, line := range lines {
			mark := "-"
			if fresh && !slices.Contains(old, line) {
				mark = "+"
			}
			fmt.Fprintf(&b, "  %s %s\n", mark, plain(line))
		}
	}
	if fresh {
		b.WriteString("+ is new since you agreed to what it may do.\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// plain is a text of a plugin's as it can be shown on a terminal: one line, and nothing that moves the cursor.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, cut(s, 300))
}
