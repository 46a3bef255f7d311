package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"bellbird/api"
	"bellbird/event"
	"bellbird/ota"
)

// The commands of updates. They work by themselves, on the same file and the same RAUC as the appliance, so that they also
// work on a device whose appliance doesn't run.

func otaCommand(f *flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ota",
		Short: "Bring the whole system to another version, or back",
		Long: `Bring the whole system to another version, or back. Nothing is restarted by these commands: the running appliance does
that as soon as nobody talks with it.`,
		Args: onlyArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	// with makes a command of what is done with an updater.
	with := func(use, short string, args cobra.PositionalArgs, do func(cmd *cobra.Command, u *updates, args []string) error) *cobra.Command {
		return &cobra.Command{Use: use, Short: short, Args: onlyArgs(args), RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.load()
			if err != nil {
				return err
			}
			o := updateOptions(c.OTA, c, f.logger(slog.LevelError))
			u := &updates{api: c.API.dial(), slots: o.Slots, dir: o.Dir, bus: new(event.Bus)}
			o.Bus = u.bus
			if u.Updater, err = ota.New(o); err != nil {
				return &usageError{err}
			}
			return do(cmd, u, args)
		}}
	}
	var q ota.Request
	install := with("install [FILE]", "Install what the server offers, or a bundle", cobra.MaximumNArgs(1), func(cmd *cobra.Command, u *updates, args []string) error {
		q.Asked = true
		if len(args) > 0 {
			q.File = args[0]
		}
		return u.install(cmd, q)
	})
	install.Flags().BoolVar(&q.Downgrade, "downgrade", false, "also install a version that isn't newer")
	install.Flags().BoolVar(&q.Interrupt, "now", false, "restart also while somebody talks with the appliance, or it rings")
	cmd.AddCommand(
		with("status", "Say which version runs, which there is, and what became of the last update", cobra.NoArgs,
			func(cmd *cobra.Command, u *updates, _ []string) error { return u.status(cmd) }),
		with("check", "Ask the server what it offers", cobra.NoArgs,
			func(cmd *cobra.Command, u *updates, _ []string) error { return u.check(cmd) }),
		install,
		with("commit", "Stay with the version that is on trial", cobra.NoArgs,
			func(cmd *cobra.Command, u *updates, _ []string) error { return u.commit(cmd) }),
		with("rollback", "Go back to the other version", cobra.NoArgs,
			func(cmd *cobra.Command, u *updates, _ []string) error { return u.rollback(cmd) }),
	)
	return cmd
}

// updates are an updater for a command.
type updates struct {
	*ota.Updater
	api   *api.Client
	slots ota.Slots
	dir   string
	bus   *event.Bus
}

// mayChange refuses to leave files behind that the appliance could not change any more.
func (u *updates) mayChange() error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(filepath.Dir(u.dir))
	if err != nil {
		return nil // it is said better by who needs it
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && owner.Uid != 0 {
		return usagef("%s isn't root's: use the user that the appliance runs as: sudo -u bellbird bellbird ota …", filepath.Dir(u.dir))
	}
	return nil
}

func (u *updates) status(cmd *cobra.Command) error {
	s, w := u.Status(), cmd.OutOrStdout()
	slots, err := u.slots.Slots(cmd.Context())
	slot := ""
	for _, at := range slots {
		if at.Booted {
			slot = ", in slot " + at.Name
		}
	}
	fmt.Fprintf(w, "installed  %s%s\n", s.Installed, slot)
	for _, at := range slots {
		if !at.Booted {
			fmt.Fprintf(w, "other      %s, in slot %s, %s\n", orElse(at.Version, "an unknown version"), at.Name, map[bool]string{true: "good", false: "bad"}[at.Good])
		}
	}
	switch {
	case s.Latest != s.Installed:
		fmt.Fprintf(w, "latest     %s\n", strings.Join(nonEmpty(s.Latest, s.Title, s.Summary, s.NotesURL), ", "))
	case !s.Checked.IsZero():
		fmt.Fprintf(w, "latest     the same, on %s\n", s.Checked.Local().Format(time.DateTime))
	default:
		fmt.Fprintln(w, "latest     it was never looked for")
	}
	if s.InProgress() {
		fmt.Fprintf(w, "now        %s: version %s\n", phaseWords[s.Phase], s.Version)
	}
	if s.Last != nil {
		fmt.Fprintf(w, "last       version %s %s on %s\n", s.Last.Version, resultWords[s.Last.Result], s.Last.At.Local().Format(time.DateTime))
		if why := s.Last.Reason.String(); why != "" {
			fmt.Fprintf(w, "           because %s\n", why)
		}
	}
	return err
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func nonEmpty(all ...string) (some []string) {
	for _, s := range all {
		if s != "" {
			some = append(some, s)
		}
	}
	return some
}

var phaseWords = map[event.UpdatePhase]string{
	event.UpdateDownloading: "it is being downloaded",
	event.UpdateInstalling:  "it is being installed",
	event.UpdateInstalled:   "it is installed, and waits for a moment to restart",
	event.UpdateRestarting:  "the device restarts for it",
	event.UpdateTrial:       "it is on trial",
	event.UpdateRollingBack: "it is being gone back from",
}

var resultWords = map[ota.Result]string{
	ota.Committed:  "was installed",
	ota.RolledBack: "was gone back from",
	ota.Kept:       "is faulty, and there is nothing to go back to: it was so",
	ota.Failed:     "could not be installed",
}

func (u *updates) check(cmd *cobra.Command) error {
	if err := u.mayChange(); err != nil {
		return err
	}
	r, err := u.Check(cmd.Context())
	switch {
	case err != nil:
		return err
	case r == nil:
		fmt.Fprintf(cmd.OutOrStdout(), "%s is the newest version\n", u.Status().Installed)
	default:
		fmt.Fprintf(cmd.OutOrStdout(), "there is version %s\n", strings.Join(nonEmpty(r.Version, r.Title, r.Summary, r.NotesURL), ", "))
	}
	return nil
}

func (u *updates) install(cmd *cobra.Command, q ota.Request) error {
	if err := u.mayChange(); err != nil {
		return err
	}
	facts := u.bus.Subscribe(256)
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		showProgress(cmd.OutOrStdout(), facts.C)
	}()
	err := u.Install(cmd.Context(), q)
	facts.Close()
	<-shown
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "version %s is installed. %s\n", u.Status().Version, u.restartAdvice(cmd.Context()))
	return nil
}

// showProgress prints every tenth of an installation.
func showProgress(w io.Writer, facts <-chan event.Fact) {
	last := -1
	for f := range facts {
		c, ok := f.(event.UpdateChanged)
		if !ok || c.Phase != event.UpdateDownloading && c.Phase != event.UpdateInstalling || c.Percent/10 == last {
			continue
		}
		last = c.Percent / 10
		fmt.Fprintf(w, "%s version %s: %d %%\n", c.Phase, c.Version, c.Percent)
	}
}

// restartAdvice says who restarts the device.
func (u *updates) restartAdvice(ctx context.Context) string {
	err := u.api.Do(ctx, http.MethodGet, "/api/chats", nil, nil)
	if errors.Is(err, api.ErrNotRunning) {
		return "Restart the device for it: sudo systemctl reboot"
	}
	return "The device restarts for it as soon as nobody talks with it."
}

func (u *updates) commit(cmd *cobra.Command) error {
	if err := u.mayChange(); err != nil {
		return err
	}
	if err := u.Commit(cmd.Context()); err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "version %s stays\n", u.Status().Installed)
	return nil
}

func (u *updates) rollback(cmd *cobra.Command) error {
	if err := u.mayChange(); err != nil {
		return err
	}
	restart, err := u.Rollback(cmd.Context())
	if err != nil {
		return err
	}
	advice := "It was not restarted into yet, and won't be."
	if restart {
		advice = u.restartAdvice(cmd.Context())
	}
	fmt.Fprintf(cmd.OutOrStdout(), "the other version is gone back to. %s\n", advice)
	return nil
}
