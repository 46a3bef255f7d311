package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"bellbird/api"
)

// The commands that look after the chats of the running appliance, and after the vault in which private ones are sealed.

func chatCommand(f *flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "chat",
		Short: "List, begin, change and export the chats of the running appliance",
		Args:  onlyArgs(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	// simple is a command that sends one request about the chat that it names first.
	simple := func(use, short, method, path string, n int, body func(args []string) any, done string) *cobra.Command {
		return &cobra.Command{
			Use: use, Short: short, Args: onlyArgs(cobra.ExactArgs(n)),
			RunE: func(cmd *cobra.Command, args []string) error {
				client, err := f.client()
				if err != nil {
					return err
				}
				var in any
				if body != nil {
					in = body(args)
				}
				if strings.Contains(path, "%s") {
					path = pathf(path, args[0])
				}
				if err := client.Do(cmd.Context(), method, path, in, nil); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%q is %s\n", args[0], done)
				return nil
			},
		}
	}
	last := func(args []string) any { return map[string]string{"name": args[len(args)-1]} }
	cmd.AddCommand(
		chatListCommand(f),
		simple("new NAME", "Begin a chat", http.MethodPost, "/api/chats", 1, last, "there now"),
		simple("use NAME", "Talk in this chat from now on", http.MethodPost, "/api/chats/%s/activate", 1, nil, "the active chat now"),
		simple("rename NAME NEW", "Give a chat another name", http.MethodPost, "/api/chats/%s/rename", 2, last, "renamed"),
		simple("clear NAME", "Forget what was said in a chat", http.MethodPost, "/api/chats/%s/clear", 1, nil, "empty now"),
		simple("delete NAME", "Remove a chat with all that is in it", http.MethodDelete, "/api/chats/%s", 1, nil, "gone"),
		chatExportCommand(f), chatSettingsCommand(f), chatPreviewCommand(f),
	)
	return cmd
}

func chatListCommand(f *flags) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the chats", Args: onlyArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := f.client()
			if err != nil {
				return err
			}
			var list []api.Chat
			if err := client.Do(cmd.Context(), http.MethodGet, "/api/chats", nil, &list); err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(list)
			}
			return printChats(cmd.OutOrStdout(), list)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printChats(out io.Writer, list []api.Chat) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(out, `No chats are visible. Private ones are, once the vault is open: "bellbird vault unlock".`)
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, c := range list {
		mark := " "
		if c.Active {
			mark = "*"
		}
		var is []string
		if c.Private {
			is = append(is, "private")
		}
		if c.Sealed {
			is = append(is, "sealed")
		}
		if c.Pinned {
			is = append(is, "pinned")
		}
		used := "never used"
		if !c.Used.IsZero() {
			used = c.Used.Local().Format("2006-01-02 15:04")
		}
		fmt.Fprintf(w, "%s %s\t%s\t%s\n", mark, c.Name, used, strings.Join(is, ", "))
	}
	return w.Flush()
}

func chatExportCommand(f *flags) *cobra.Command {
	return &cobra.Command{
		Use: "export NAME [FILE]", Short: "Write a chat as JSON", Args: onlyArgs(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := f.client()
			if err != nil {
				return err
			}
			var text json.RawMessage
			if err := client.Do(cmd.Context(), http.MethodGet, pathf("/api/chats/%s/export", args[0]), nil, &text); err != nil {
				return err
			}
			if len(args) == 1 {
				_, err := cmd.OutOrStdout().Write(append(text, '\n'))
				return err
			}
			return os.WriteFile(args[1], append(text, '\n'), 0o600)
		},
	}
}

func chatSettingsCommand(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "set NAME [KEY=VALUE...]",
		Short: "Show a chat's settings, or change some",
		Long: `Show a chat's settings, or change some. A value is JSON, or else a text as it is; null, or nothing, is the default. With
a vault, private_chat=true seals the chat.`,
		Example: "  bellbird chat set kitchen inject_datetime=true ghost_context=\"Keep it short, it is noisy here.\"",
		Args:    onlyArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := f.client()
			if err != nil {
				return err
			}
			path := pathf("/api/chats/%s/settings", args[0])
			var all map[string]json.RawMessage
			if len(args) == 1 {
				err = client.Do(cmd.Context(), http.MethodGet, path, nil, &all)
			} else {
				some := make(map[string]json.RawMessage)
				for _, pair := range args[1:] {
					key, value, ok := strings.Cut(pair, "=")
					if !ok {
						return usagef("%q: a setting is KEY=VALUE", pair)
					}
					some[key] = settingValue(value)
				}
				err = client.Do(cmd.Context(), http.MethodPut, path, some, &all)
			}
			if err != nil {
				return err
			}
			for _, key := range sorted(all) {
				fmt.Fprintf(cmd.OutOrStdout(), "%s=%s\n", key, all[key])
			}
			return nil
		},
	}
}

// settingValue is the JSON of a value as it is typed.
func settingValue(text string) json.RawMessage {
	switch {
	case text == "":
		return json.RawMessage("null")
	case json.Valid([]byte(text)):
		return json.RawMessage(text)
	}
	quoted, _ := json.Marshal(text)
	return quoted
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func chatPreviewCommand(f *flags) *cobra.Command {
	var input string
	cmd := &cobra.Command{
		Use:   "preview NAME",
		Short: "Show what a model would be asked next in a chat",
		Long: `Show what a model would be asked next in a chat, with what the plugins contribute to it, for which their hooks of the
prompt are called. Nothing is sent, and nothing kept.`,
		Args: onlyArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := f.client()
			if err != nil {
				return err
			}
			var p api.Preview
			path := pathf("/api/chats/%s/prompt-preview", args[0]) + "?" + url.Values{"input": {input}}.Encode()
			if err := client.Do(cmd.Context(), http.MethodGet, path, nil, &p); err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			for _, m := range p.Messages {
				ghost := ""
				if m.Ghost {
					ghost = ", in this request only"
				}
				fmt.Fprintf(out, "── %s%s\n%s\n", m.Role, ghost, m.Content)
			}
			fmt.Fprintf(out, "── tools\n%s\n", strings.Join(p.Tools, " "))
			for _, h := range p.Hooks {
				fmt.Fprintf(out, "── hook %s of %s: %s\n", h.Point, h.Plugin, h.Outcome)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&input, "input", "", "what the user says next")
	return cmd
}

func vaultCommand(f *flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "vault",
		Short: "Seal private chats with a passphrase, and unlock them",
		Long: `Seal private chats with a passphrase, and unlock them. While the vault is locked they are not there. The passphrase is
asked for, or read from standard input, a line each. Nobody can open the vault without it.`,
		Args: onlyArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	type asks = []string // what to ask for, as field and question
	sub := func(use, short, method, path, done string, questions ...asks) *cobra.Command {
		return &cobra.Command{
			Use: use, Short: short, Args: onlyArgs(cobra.NoArgs),
			RunE: func(cmd *cobra.Command, _ []string) error {
				client, err := f.client()
				if err != nil {
					return err
				}
				body, err := askSecrets(cmd.InOrStdin(), cmd.ErrOrStderr(), questions)
				if err != nil {
					return err
				}
				if err := client.Do(cmd.Context(), method, path, body, nil); err != nil {
					return err
				}
				fmt.Fprintln(cmd.OutOrStdout(), done)
				return nil
			},
		}
	}
	cmd.AddCommand(
		&cobra.Command{
			Use: "state", Short: "Tell whether there is a vault, and whether it is locked", Args: onlyArgs(cobra.NoArgs),
			RunE: func(cmd *cobra.Command, _ []string) error {
				client, err := f.client()
				if err != nil {
					return err
				}
				var v struct{ State string }
				if err := client.Do(cmd.Context(), http.MethodGet, "/api/vault", nil, &v); err != nil {
					return err
				}
				fmt.Fprintln(cmd.OutOrStdout(), v.State)
				return nil
			},
		},
		sub("setup", "Make the vault, and seal what is private already", http.MethodPost, "/api/vault/setup", "The vault is set up and open.",
			asks{"passphrase", "New passphrase: "}, asks{"", "Once more: "}),
		sub("unlock", "Open the vault", http.MethodPost, "/api/vault/unlock", "The vault is open.", asks{"passphrase", "Passphrase: "}),
		sub("lock", "Lock the vault", http.MethodPost, "/api/vault/lock", "The vault is locked."),
		sub("passphrase", "Change the passphrase", http.MethodPost, "/api/vault/passphrase", "The passphrase is changed.",
			asks{"from", "Old passphrase: "}, asks{"to", "New passphrase: "}, asks{"", "Once more: "}),
	)
	return cmd
}

// askSecrets asks for each of some secrets and returns them by field. One without a field must repeat the one before.
func askSecrets(in io.Reader, prompt io.Writer, questions [][]string) (map[string]string, error) {
	if len(questions) == 0 {
		return nil, nil
	}
	answers := make(map[string]string)
	lines := bufio.NewReader(io.LimitReader(in, 1<<16))
	terminal, _ := in.(*os.File)
	if terminal != nil && !term.IsTerminal(int(terminal.Fd())) {
		terminal = nil
	}
	before := ""
	for _, q := range questions {
		var answer string
		switch {
		case terminal != nil:
			fmt.Fprint(prompt, q[1])
			text, err := term.ReadPassword(int(terminal.Fd()))
			fmt.Fprintln(prompt)
			if err != nil {
				return nil, err
			}
			answer = string(text)
		case q[0] == "":
			continue // there is no typing error in a file
		default:
			line, err := lines.ReadString('\n')
			if err != nil && (err != io.EOF || line == "") {
				return nil, errors.New("the passphrase is missing: it is asked for on a terminal, or read from standard input")
			}
			answer = strings.TrimRight(line, "\r\n")
		}
		if q[0] == "" && answer != before {
			return nil, errors.New("the two are not the same: nothing is changed")
		}
		if q[0] != "" {
			answers[q[0]] = answer
		}
		before = answer
	}
	return answers, nil
}
