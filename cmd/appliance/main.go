// Command bellbird is the firmware of a smart speaker. This package is its wiring: the only place that knows all parts.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// Set by the Makefile.
var (
	version = "unknown"
	built   = ""
)

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2 // of the command line, or of the configuration
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := execute(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cmd := rootCommand()
	cmd.SetArgs(args)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, "bellbird:", err)
	var usage *usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailed
}

// A usageError is one that the user has to correct before it makes sense to try again.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// flags are those that all commands share.
type flags struct {
	config  string
	models  []string
	plugins string
	state   string
	verbose bool
}

func rootCommand() *cobra.Command {
	var f flags
	root := &cobra.Command{
		Use:           "bellbird",
		Short:         "The firmware of a smart speaker",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          onlyArgs(cobra.NoArgs),
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%v: see %q", err, cmd.CommandPath()+" --help")
	})
	p := root.PersistentFlags()
	p.StringVar(&f.config, "config", "", "configuration file (default "+defaultConfig+", if it is there)")
	p.StringSliceVar(&f.models, "models", nil, "directory of wake word models (default those of the configuration)")
	p.StringVar(&f.plugins, "plugins", "", "directory of plugins (default that of the configuration)")
	p.StringVar(&f.state, "state", "", "directory of what the appliance keeps (default "+defaultState+")")
	p.BoolVarP(&f.verbose, "verbose", "v", false, "log debug messages; these contain what was said")
	root.AddCommand(
		runCommand(&f), demoCommand(&f), askCommand(&f), sayCommand(&f), wakeCommand(&f), checkCommand(&f), ringCommand(),
		pluginCommand(&f), integrationCommand(&f), chatCommand(&f), vaultCommand(&f), mqttCommand(&f), turnsCommand(&f), otaCommand(&f), benchCommand(&f), versionCommand(), workerCommand(), pythonCommand(),
	)
	return root
}

// onlyArgs makes the complaint of a positional-arguments check a usage error, on one line.
func onlyArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			reason, _, _ := strings.Cut(err.Error(), "\n")
			return usagef("%s: see %q", reason, cmd.CommandPath()+" --help")
		}
		return nil
	}
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  onlyArgs(cobra.NoArgs),
		Run: func(cmd *cobra.Command, _ []string) {
			line := "bellbird " + version
			if built != "" {
				line += " of " + built
			}
			fmt.Fprintln(cmd.OutOrStdout(), line)
		},
	}
}
