package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bellbird/api"
	"bellbird/plugins"
	"bellbird/plugins/install"
	"bellbird/plugins/review"
	"bellbird/plugins/sign"
	"bellbird/plugins/system"
)

// The commands for plugins that come from elsewhere, or go there: whose they are, what they ask for, and bringing them in.

// gate decides which of the user's plugins may be loaded.
func (p *Plugins) gate() install.Gate {
	g := install.NewGate(p.Policy, p.StateDir)
	g.Own = p.own
	return g
}

// elsewhereCommands are those that bring plugins in, and those for their authors.
func elsewhereCommands(f *flags) []*cobra.Command {
	return []*cobra.Command{
		pluginInstallCommand(f), pluginConsentCommand(f), pluginRemoveCommand(f), pluginTrustCommand(f), pluginVerifyCommand(f),
		pluginReviewCommand(), pluginKeygenCommand(), pluginSignCommand(),
	}
}

// installing are the options of what brings plugins in.
func (f *flags) installing() (Config, install.Options, error) {
	c, err := f.load()
	if err != nil {
		return c, install.Options{}, err
	}
	return c, install.Options{Gate: c.Plugins.gate(), UserDir: c.Plugins.UserDir, Taken: func(name string) string { return systemHas(c.Plugins.SystemDir, name) }}, nil
}

// systemHas says which of the appliance's own plugins has a name; "": none.
func systemHas(dir, name string) string {
	if _, err := fs.Stat(system.Files, name); err == nil {
		return "a plugin of the program itself"
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "" // there is none
	}
	for _, e := range entries {
		if m, err := plugins.ReadManifest(filepath.Join(dir, e.Name())); err == nil && m.Name == name {
			return "a plugin that came with the appliance"
		}
	}
	return ""
}

func pluginInstallCommand(f *flags) *cobra.Command {
	var yes, allowUnsigned bool
	cmd := &cobra.Command{
		Use:   "install SOURCE",
		Short: "Install or update a plugin from a directory, a zip file or an https address",
		Long: `Install a plugin from a directory, a zip file or an https address, after showing what it hears, what it changes and where
it may connect. One that is installed already is updated: it keeps what it kept, and is shown again only if it asks for more
than you agreed to.`,
		Args: onlyArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, o, err := f.installing()
			if err != nil {
				return err
			}
			o.AllowUnsigned = allowUnsigned
			if err := o.Sweep(time.Now()); err != nil {
				return err
			}
			s, err := o.Stage(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer s.Discard()
			if !s.Update || !s.Agreed {
				if err := consent(cmd, s.Sheet, yes, "Install it?"); err != nil {
					return err
				}
			}
			if err := s.Commit(); err != nil {
				return err
			}
			return f.installed(cmd.Context(), cmd.OutOrStdout(), s)
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "agree to what it may do, without being asked")
	cmd.Flags().BoolVar(&allowUnsigned, "allow-unsigned", false, "also if nobody signed it")
	return cmd
}

// consent shows a sheet and asks.
func consent(cmd *cobra.Command, s *install.Sheet, yes bool, question string) error {
	out := cmd.OutOrStdout()
	if err := s.Print(out); err != nil {
		return err
	}
	if yes {
		return nil
	}
	fmt.Fprintf(out, "%s [y/N] ", question)
	answer, err := bufio.NewReader(io.LimitReader(cmd.InOrStdin(), 1000)).ReadString('\n')
	if err != nil && answer == "" {
		fmt.Fprintln(out)
		return errors.New("nobody answered, so nothing is changed: --yes agrees without being asked")
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return errors.New("you did not agree, so nothing is changed")
}

// installed has the appliance know of a plugin that has just come. A new one is enabled: its owner wanted it.
func (f *flags) installed(ctx context.Context, out io.Writer, s *install.Staged) error {
	return f.withPlugins(ctx, func(p api.Plugins, live bool) error {
		word := "installed"
		var err error
		if live {
			err = p.Rescan(ctx)
		}
		switch {
		case err != nil:
		case !s.Update:
			err = p.SetEnabled(ctx, s.Name, true)
		case live:
			err = p.Reload(ctx, s.Name)
		}
		if s.Update {
			word = "updated"
		}
		if err != nil {
			return fmt.Errorf("%s is %s, but not loaded: %w", s.Name, word, err)
		}
		_, err = fmt.Fprintf(out, "%s %s is %s\n", s.Name, s.Version, word)
		return err
	})
}

func pluginConsentCommand(f *flags) *cobra.Command {
	var yes, allowUnsigned bool
	cmd := &cobra.Command{
		Use:   "consent NAME",
		Short: "Agree to what a plugin may do that was put into the directory by hand, or asks for more than before",
		Args:  onlyArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, o, err := f.installing()
			if err != nil {
				return err
			}
			name := args[0]
			dir, err := o.Find(name)
			if err != nil {
				return err
			}
			s, err := o.Gate.Sheet(dir)
			if err != nil {
				return err
			}
			if err := s.MayAgree(allowUnsigned); err != nil {
				return err
			}
			if err := consent(cmd, s, yes, "Do you agree?"); err != nil {
				return err
			}
			if err := s.Agree(allowUnsigned); err != nil {
				return err
			}
			return f.withPlugins(cmd.Context(), func(p api.Plugins, live bool) error {
				if live { // an appliance that begins later reads it then
					if err := errors.Join(p.Rescan(cmd.Context()), p.Reload(cmd.Context(), name)); err != nil {
						return fmt.Errorf("%s is allowed, but not loaded: %w", name, err)
					}
				}
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s is allowed to do this\n", name)
				return err
			})
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "agree without being asked")
	cmd.Flags().BoolVar(&allowUnsigned, "allow-unsigned", false, "also if nobody signed it")
	return cmd
}

func pluginRemoveCommand(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "remove NAME...",
		Short: "Remove plugins; what they kept is there if they come again",
		Args:  onlyArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, o, err := f.installing()
			if err != nil {
				return err
			}
			for _, name := range args {
				err := o.Remove(name)
				if what := systemHas(c.Plugins.SystemDir, name); err != nil && what != "" {
					return fmt.Errorf("%s is %s and can't be removed: \"bellbird plugin disable %s\" turns it off", name, what, name)
				} else if err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s is removed\n", name)
			}
			err = (&remotePlugins{client: c.API.dial()}).Rescan(cmd.Context())
			if errors.Is(err, api.ErrNotRunning) {
				return nil // an appliance that begins later will not find them
			}
			return err
		},
	}
}

func pluginTrustCommand(f *flags) *cobra.Command {
	var remove string
	cmd := &cobra.Command{
		Use:   "trust [NAME KEY]",
		Short: "Trust an author's key, or show those that are trusted",
		Long: `Trust the key of an author: plugins that he signs need no more than that you agree to what they may do. NAME is what you
call him, and KEY the public key, or the file that "bellbird plugin keygen" put it in. Without arguments, show the keys.`,
		Args: onlyArgs(func(cmd *cobra.Command, args []string) error {
			if remove != "" {
				return cobra.NoArgs(cmd, args)
			}
			if len(args) == 0 {
				return nil
			}
			return cobra.ExactArgs(2)(cmd, args)
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.load()
			if err != nil {
				return err
			}
			g, out := c.Plugins.gate(), cmd.OutOrStdout()
			switch {
			case remove != "":
				if err := sign.RemoveKey(g.Keys, remove); err != nil {
					return err
				}
				_, err = fmt.Fprintf(out, "The key of %s is not trusted any more. Plugins that run are refused when they are loaded again.\n", remove)
				return err
			case len(args) == 2:
				key, err := publicKey(args[1])
				if err != nil {
					return err
				}
				if err := sign.AddKey(g.Keys, sign.Key{Name: args[0], Public: key}); err != nil {
					return err
				}
				_, err = fmt.Fprintf(out, "Plugins signed with %s are those of %s.\n", key, args[0])
				return err
			}
			return showKeys(out, g)
		},
	}
	cmd.Flags().StringVar(&remove, "remove", "", "do not trust the key of this name any more")
	return cmd
}

// publicKey reads a key from the command line, or from the file that is named there.
func publicKey(arg string) (string, error) {
	if _, err := sign.ParsePublic(arg); err == nil {
		return strings.ToLower(arg), nil
	}
	file, err := os.Open(arg)
	if errors.Is(err, fs.ErrNotExist) {
		_, err = sign.ParsePublic(arg)
		return "", err
	} else if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, 1000))
	if err != nil {
		return "", err
	}
	if _, err := sign.ParsePublic(string(text)); err != nil {
		return "", fmt.Errorf("%s has no public key: one has 64 hex digits", arg)
	}
	return strings.ToLower(strings.TrimSpace(string(text))), nil
}

func showKeys(out io.Writer, g install.Gate) error {
	keys, err := sign.ReadKeys(g.Keys)
	if err != nil {
		return err
	}
	if g.OfficialKey != "" {
		fmt.Fprintf(out, "%s  official\n", g.OfficialKey)
	}
	for _, k := range keys {
		fmt.Fprintf(out, "%s  %s\n", k.Public, k.Name)
	}
	if len(keys) == 0 && g.OfficialKey == "" {
		_, err = fmt.Fprintln(out, `No key is trusted. "bellbird plugin trust NAME KEY" trusts one.`)
	}
	return err
}

func pluginVerifyCommand(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "verify DIR...",
		Short: "Tell whose plugins are, and whether they were changed since they were signed",
		Args:  onlyArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.load()
			if err != nil {
				return err
			}
			g := c.Plugins.gate()
			authors, err := sign.ReadKeys(g.Keys)
			if err != nil {
				return err
			}
			bad := 0
			for _, dir := range args {
				root, err := os.OpenRoot(dir)
				if err != nil {
					return err
				}
				r := sign.Keys{Official: g.OfficialKey, Authors: authors}.Verify(root.FS())
				root.Close()
				line := dir + ": " + install.Origin(r)
				if r.Err != nil {
					line += ": " + r.Err.Error()
				}
				fmt.Fprintln(cmd.OutOrStdout(), line)
				if r.State != sign.Official && r.State != sign.Verified {
					bad++
				}
			}
			if bad > 0 {
				return fmt.Errorf("of %d plugins %d are not signed by somebody who is trusted", len(args), bad)
			}
			return nil
		},
	}
}

func pluginReviewCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "review DIR...",
		Short: "Name what is rejected, or wants a look, when a plugin is reviewed",
		Long: `Read plugins for patterns that are rejected when they are reviewed, such as matching on the user's words to tell the model
something that he doesn't see. These are warnings, for somebody who then reads the plugin, and finding none proves nothing.`,
		Args: onlyArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			out, n := cmd.OutOrStdout(), 0
			for _, dir := range args {
				findings, err := review.Dir(dir)
				if err != nil {
					return fmt.Errorf("%s: %w", dir, err)
				}
				for _, found := range findings {
					fmt.Fprintf(out, "%s:%d: warning: %s\n", filepath.Join(dir, found.File), found.Line, found.Text)
				}
				n += len(findings)
			}
			_, err := fmt.Fprintf(out, "%d warnings\n", n)
			return err
		},
	}
}

const defaultKey = "plugin_signing_key.pem"

func pluginKeygenCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "keygen [FILE]",
		Short: "Make a key to sign plugins with",
		Long: `Make a key to sign plugins with, in FILE, which only you can read; default ` + defaultKey + `. The public key, which others trust, is
printed, and written beside it.`,
		Args: onlyArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			file := defaultKey
			if len(args) > 0 {
				file = args[0]
			}
			public, err := sign.Generate(file)
			if err != nil {
				return err
			}
			if err := os.WriteFile(file+".pub", []byte(public+"\n"), 0o644); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is a new key: keep it to yourself, and a copy of it. The public one, also in %s.pub:\n%s\n", file, file, public)
			return err
		},
	}
}

func pluginSignCommand() *cobra.Command {
	var key string
	cmd := &cobra.Command{
		Use:   "sign DIR...",
		Short: "Sign plugins as they are now",
		Args:  onlyArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			private, err := sign.ReadPrivate(key)
			if errors.Is(err, fs.ErrNotExist) {
				return usagef(`%v: "bellbird plugin keygen" makes a key, --key names one`, err)
			} else if err != nil {
				return err
			}
			for _, dir := range args {
				if _, err := plugins.ReadManifest(dir); err != nil {
					return err
				}
				if err := sign.Sign(dir, private); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s is signed\n", dir)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&key, "key", defaultKey, "file of the key")
	return cmd
}
