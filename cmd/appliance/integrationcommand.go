package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/spf13/cobra"

	"bellbird/internal/run"
	"bellbird/plugins"
	integrations "bellbird/plugins/mcp"
)

// The commands of integrations. They work on the same files as the appliance, which looks at them when they change.

func integrationCommand(f *flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "integration",
		Short: "List the MCP servers that have hooks, agree to them, silence them",
		Args:  onlyArgs(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	list := &cobra.Command{Use: "list", Short: "List the integrations, and what each asks for", Args: onlyArgs(cobra.NoArgs), RunE: func(cmd *cobra.Command, _ []string) error {
		c, err := f.load()
		if err != nil {
			return err
		}
		found, err := integrations.Find(c.Integrations.Dir, ledger(c.Plugins))
		if err != nil {
			return err
		}
		if len(found) == 0 {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "There are none in %s.\n", c.Integrations.Dir)
			return err
		}
		return listIntegrations(cmd.OutOrStdout(), found)
	}}
	var yes bool
	agree := &cobra.Command{Use: "agree NAME", Short: "Look at what an integration asks for, and agree to it", Args: onlyArgs(cobra.ExactArgs(1)), RunE: func(cmd *cobra.Command, args []string) error {
		c, err := f.load()
		if err != nil {
			return err
		}
		found, err := integrations.Find(c.Integrations.Dir, ledger(c.Plugins))
		if err != nil {
			return err
		}
		at := slices.IndexFunc(found, func(i integrations.Info) bool { return i.Name == args[0] })
		if at < 0 {
			return fmt.Errorf("integration %q: %w in %s", args[0], integrations.ErrUnknown, c.Integrations.Dir)
		}
		asks := found[at].Asks
		if asks.Hash == "" {
			return errors.New(found[at].Problem)
		}
		out := cmd.OutOrStdout()
		if err := listIntegrations(out, found[at:at+1]); err != nil {
			return err
		}
		if !yes {
			fmt.Fprint(out, "Do you agree? [y/N] ")
			line, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
			if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
				return errors.New("not agreed, and nothing is changed")
			}
		}
		if err := integrations.Agree(c.Integrations.Dir, ledger(c.Plugins), args[0], asks.Hash); err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "%s is allowed to do this\n", args[0])
		return err
	}}
	agree.Flags().BoolVar(&yes, "yes", false, "agree without being asked")
	access := &cobra.Command{Use: "access NAME on|off", Short: "Let an integration's hooks be called, or none of them", Args: onlyArgs(cobra.ExactArgs(2)), RunE: func(cmd *cobra.Command, args []string) error {
		c, err := f.load()
		if err != nil {
			return err
		}
		if args[1] != "on" && args[1] != "off" {
			return usagef("access %s: it is on or off", args[1])
		}
		found, err := integrations.Find(c.Integrations.Dir, ledger(c.Plugins))
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(found, func(i integrations.Info) bool { return i.Name == args[0] }) {
			return fmt.Errorf("integration %q: %w in %s", args[0], integrations.ErrUnknown, c.Integrations.Dir)
		}
		if err := ledger(c.Plugins).Silence(args[0], args[1] == "off"); err != nil {
			return err
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "the transcript access of %s is %s\n", args[0], args[1])
		return err
	}}
	cmd.AddCommand(list, agree, access)
	return cmd
}

func listIntegrations(out io.Writer, list []integrations.Info) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, i := range list {
		state := "agreed"
		switch {
		case !i.Agreed:
			state = "not agreed"
		case !i.Access:
			state = "silenced"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", i.Name, i.Version, state, i.Summary)
		line := func(what string, of ...string) {
			if len(of) > 0 && of[0] != "" {
				fmt.Fprintf(w, "\t\t\t  %s: %s\n", what, strings.Join(of, ", "))
			}
		}
		line("by", i.Author)
		line("permissions", i.Asks.Permissions...)
		line("hooks", i.Asks.Hooks...)
		line("while in front", i.Asks.Apps...)
		line("server", i.Asks.Server)
		if i.Asks.Private {
			line("also in", "private chats")
		}
		line("problem", i.Problem)
	}
	return w.Flush()
}

// ledger has what the user decided about integrations.
func ledger(c Plugins) *plugins.Ledger {
	return plugins.NewLedger(filepath.Join(c.StateDir, plugins.LedgerName))
}

// settled is for how long nothing must change before what has changed is looked at: files come one after the other.
const settled = 200 * time.Millisecond

// watchIntegrations has the integrations looked at again when a command, or somebody with an editor, has changed them.
func (a *appliance) watchIntegrations(c Config, log *slog.Logger) run.Part {
	return run.Part{Name: "integrations' files", Run: func(ctx context.Context) error {
		w, err := fsnotify.NewWatcher()
		if err != nil {
			log.Warn("changes of integrations are seen at the next start only", "err", err)
			<-ctx.Done()
			return nil
		}
		defer w.Close()
		watch := func() {
			dirs, _ := filepath.Glob(filepath.Join(escapeGlob(c.Integrations.Dir), "*"))
			for _, dir := range append(dirs, c.Integrations.Dir, c.Plugins.StateDir) {
				if info, err := os.Stat(dir); err == nil && info.IsDir() {
					_ = w.Add(dir) // what can't be watched is seen at the next start
				}
			}
		}
		watch()
		later := time.NewTimer(0)
		defer later.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-w.Errors:
			case e := <-w.Events:
				if filepath.Dir(e.Name) != filepath.Clean(c.Plugins.StateDir) || filepath.Base(e.Name) == plugins.LedgerName {
					later.Reset(settled)
				}
			case <-later.C:
				watch()
				if err := a.integrations.Scan(ctx); err != nil && ctx.Err() == nil {
					log.Error("integrations", "err", err)
				}
			}
		}
	}}
}
