package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"bellbird/api"
	"bellbird/turns"
)

// The command that shows the records of turns.

// spanNames are the columns of the table.
var spanNames = []string{"endpoint", "recognise", "think", "speak", "answer", "turn"}

func turnsCommand(f *flags) *cobra.Command {
	var asJSON bool
	var limit int
	cmd := &cobra.Command{
		Use:   "turns [NUMBER]",
		Short: "Show what the last turns took, stage by stage, or one of them as a waterfall",
		Long: `Show what the last turns took, stage by stage, in milliseconds, or one of them as a waterfall:

  endpoint   from the last voiced frame until the utterance was found to have ended
  recognise  from there until its text was known
  think      from there until the model's first word
  speak      from there until the first sound of the answer
  answer     from the last voiced frame to the first sound: what the user waits
  turn       all of it

The quantiles below the table are of all turns that are recorded. Nothing that was said is, and nothing of private chats.`,
		Args: onlyArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 {
				return usagef("--limit %d: it is at least 1", limit)
			}
			all, err := f.turnRecords(cmd)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if len(args) == 1 {
				return showTurn(out, all, args[0], asJSON)
			}
			if asJSON {
				return json.NewEncoder(out).Encode(all[:min(limit, len(all))])
			}
			return printTurns(out, all, limit)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().IntVar(&limit, "limit", 20, "how many to list")
	return cmd
}

// turnRecords are those of the running appliance, or else those that the last one left, the last turn first.
func (f *flags) turnRecords(cmd *cobra.Command) ([]api.TurnRecord, error) {
	c, err := f.load()
	if err != nil {
		return nil, err
	}
	var all []api.TurnRecord
	path := "/api/turns?limit=" + strconv.Itoa(2*turns.MaxKept)
	err = c.API.dial().Do(cmd.Context(), http.MethodGet, path, nil, &all)
	if errors.Is(err, api.ErrNotRunning) {
		return recordsOf(turns.Read(c.turnDir()))
	}
	return all, err
}

// showTurn draws the waterfall of a turn.
func showTurn(out io.Writer, all []api.TurnRecord, number string, asJSON bool) error {
	id, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return usagef("%q: it is the number of a turn, as \"bellbird turns\" lists them", number)
	}
	i := slices.IndexFunc(all, func(r api.TurnRecord) bool { return r.ID == id })
	if i < 0 {
		return fmt.Errorf("there is no record of a turn %d: \"bellbird turns\" lists them", id)
	}
	if asJSON {
		return json.NewEncoder(out).Encode(all[i])
	}
	r := all[i].Record
	r.Run = id // which is how it is called here
	fmt.Fprintf(out, "          %s\n", r.Began.Local().Format(time.DateTime))
	newScreen(out, r.Began).waterfall(r)
	return nil
}

// printTurns prints the table, the last turn at its end, and the quantiles.
func printTurns(out io.Writer, all []api.TurnRecord, limit int) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(out, "No turns are recorded yet.")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "turn\twhen\toutcome")
	for _, name := range spanNames {
		fmt.Fprint(w, "\t", name)
	}
	fmt.Fprintln(w, "\tslowest hook")
	took := make(map[string][]float64) // in ms, by span
	for i := len(all) - 1; i >= 0; i-- {
		r, by := all[i], make(map[string]float64)
		for _, s := range turns.Spans(r.Stages) {
			by[s.Name] = float64((s.To - s.From).Microseconds()) / 1000
			took[s.Name] = append(took[s.Name], by[s.Name])
		}
		if i >= limit {
			continue
		}
		outcome := string(r.Outcome)
		if r.Error != "" {
			outcome += ": " + string(r.Error)
		}
		fmt.Fprintf(w, "%d\t%s\t%s", r.ID, r.Began.Local().Format(time.DateTime), outcome)
		for _, name := range spanNames {
			ms, ok := by[name]
			fmt.Fprint(w, "\t", milliseconds(ms, ok))
		}
		hook := ""
		if h := turns.Slowest(r.Hooks); h != nil {
			hook = fmt.Sprintf("%.1f ms %s %s", float64(time.Duration(h.Took).Microseconds())/1000, cmp.Or(h.Plugin, "-"), describeCall(*h))
		}
		fmt.Fprintf(w, "\t%s\n", hook)
	}
	for _, q := range []int{50, 95, 99} {
		fmt.Fprintf(w, "p%d\t\t", q)
		for _, name := range spanNames {
			slices.Sort(took[name])
			ms := 0.0
			if len(took[name]) > 0 {
				ms = turns.Quantile(took[name], float64(q)/100)
			}
			fmt.Fprint(w, "\t", milliseconds(ms, len(took[name]) > 0))
		}
		fmt.Fprintln(w, "\t")
	}
	return w.Flush()
}

func milliseconds(ms float64, known bool) string {
	if !known {
		return "-"
	}
	return strconv.FormatFloat(ms, 'f', 0, 64)
}
