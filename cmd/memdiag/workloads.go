package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/engine/workload"
	"github.com/memdiag/memdiag/snapshot"
)

func newWorkloadsCommand(env *environment) *cobra.Command {
	format := textOrJSON()
	var output string
	var seed int64
	cmd := &cobra.Command{
		Use:     "workloads",
		GroupID: groupMore,
		Short:   "list the built-in workloads, and what each one leaks or holds",
		Long: `Lists the programs that record trains: what is true of each, what drives its
growth, how fast it grows, up to where, and why. Rates and bounds depend on the
seed.`,
		Example: `  memdiag workloads
  memdiag workloads --seed 3 --format json`,
		Args: takes(0, 0, "arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			asJSON, err := textFormat(cmd, output, format)
			if err != nil {
				return err
			}
			return env.result(output, false, func(w io.Writer) error {
				if asJSON {
					return workloadsJSON(w, seed)
				}
				return workloadsText(w, seed)
			})
		},
	}
	flags := cmd.Flags()
	flags.Int64Var(&seed, "seed", 0, "seed that rates and bounds are drawn with")
	flags.Var(&format, "format", "format on standard output: text or json")
	flags.StringVarP(&output, "output", "o", "", "write to `FILE`; .json gives JSON")
	return cmd
}

func workloadsText(w io.Writer, seed int64) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "id\tlabel\tdriver\trate\tbound\tcause\tfamilies\ttitle")
	for _, l := range workload.All() {
		growth := l.Truth(seed).Growth
		if len(growth) == 0 {
			fmt.Fprintf(table, "%s\t%s\t\t\t\t\t%s\t%s\n", l.ID, l.Label, families(l), l.Title)
		}
		for i, g := range growth {
			id, of, title := l.ID, families(l), l.Title
			if i > 0 {
				id, of, title = "", "", ""
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", id, l.Label, driver(g), rate(g), bound(g), l.Cause, of, title)
		}
	}
	return table.Flush()
}

// families are the kinds of training that a workload represents.
func families(w workload.Workload) string {
	var names []string
	for _, f := range w.Families {
		names = append(names, string(f))
	}
	return strings.Join(names, ", ")
}

// driver says when growth happens: "step", "3 steps from 40".
func driver(g workload.Growth) string {
	of := string(g.Event)
	if g.Every > 1 {
		of = fmt.Sprintf("%d %ss", g.Every, g.Event)
	}
	if g.First > g.Every {
		of += fmt.Sprintf(" from %d", g.First)
	}
	return of
}

// rate is the growth of one event.
func rate(g workload.Growth) string {
	bytes := g.Bytes.String()
	if g.Unit != "" {
		bytes += " per " + g.Unit
	}
	rate := fmt.Sprintf("%s, %s", blocks(g.Blocks), bytes)
	if g.Meter == workload.Reserved {
		rate = "1 segment"
	}
	var remarks []string
	if g.Shape != workload.Linear {
		remarks = append(remarks, string(g.Shape))
	}
	if g.Meter == workload.OnHost {
		remarks = append(remarks, "on the host")
	}
	if len(remarks) > 0 {
		rate += " (" + strings.Join(remarks, ", ") + ")"
	}
	return rate
}

func bound(g workload.Growth) string {
	if g.Unbounded() {
		return "none"
	}
	if g.Meter == workload.Reserved {
		return fmt.Sprintf("%d segments, %s", g.Bound.Blocks, g.Bound.Bytes)
	}
	return fmt.Sprintf("%s, %s", blocks(g.Bound.Blocks), g.Bound.Bytes)
}

func blocks(n int64) string {
	if n == 1 {
		return "1 block"
	}
	return fmt.Sprintf("%d blocks", n)
}

type workloadListJSON struct {
	SchemaVersion int            `json:"schema_version"`
	Seed          int64          `json:"seed"`
	Workloads     []workloadJSON `json:"workloads"`
}

type workloadJSON struct {
	ID       string            `json:"id"`
	Alias    string            `json:"alias"`
	Title    string            `json:"title"`
	Label    workload.Label    `json:"label"`
	Families []workload.Family `json:"families"`
	Cause    string            `json:"cause,omitempty"`
	Steps    int64             `json:"steps"` // steps that a run needs to show it
	Growth   []growthJSON      `json:"growth"`
}

type growthJSON struct {
	Marker string         `json:"marker"`
	File   string         `json:"file"`
	Line   int            `json:"line"`
	Meter  string         `json:"meter"` // device, host or reserved
	Driver workload.Event `json:"driver"`
	Every  int64          `json:"every"`
	First  int64          `json:"first"`
	Blocks int64          `json:"blocks"`
	Bytes  int64          `json:"requested_bytes"`
	Unit   string         `json:"unit,omitempty"` // unit of input that Bytes are for
	Shape  workload.Shape `json:"shape"`
	Base   int64          `json:"base"`
	Bound  *amountJSON    `json:"bound"` // null for none
	Owners []string       `json:"owners"`
}

type amountJSON struct {
	Blocks int64          `json:"blocks"`
	Bytes  snapshot.Bytes `json:"requested_bytes"`
}

func workloadsJSON(w io.Writer, seed int64) error {
	list := workloadListJSON{SchemaVersion: 1, Seed: seed}
	for _, l := range workload.All() {
		truth := l.Truth(seed)
		entry := workloadJSON{
			ID: l.ID, Alias: l.Alias, Title: l.Title, Label: l.Label, Cause: l.Cause, Steps: truth.Steps,
			Families: append([]workload.Family{}, l.Families...), Growth: []growthJSON{},
		}
		for _, g := range truth.Growth {
			file, line, err := workload.Line(g.Marker)
			if err != nil {
				return err
			}
			row := growthJSON{
				Marker: g.Marker, File: file, Line: line, Meter: cmp.Or(string(g.Meter), "device"), Driver: g.Event, Every: g.Every, First: g.First,
				Blocks: g.Blocks, Bytes: int64(g.Bytes), Unit: g.Unit, Shape: g.Shape, Base: g.Base, Owners: g.Owner.Names(),
			}
			if !g.Unbounded() {
				row.Bound = &amountJSON{g.Bound.Blocks, g.Bound.Bytes}
			}
			entry.Growth = append(entry.Growth, row)
		}
		list.Workloads = append(list.Workloads, entry)
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(list)
}
