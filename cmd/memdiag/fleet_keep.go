package main

import (
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/fleet"
	"github.com/memdiag/memdiag/snapshot"
)

func newFleetCompactCommand(f *fleetFolder) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "compact",
		Short: "merge the files of each day's runs",
		Long: `Merges the runs of each day into one file a table. Runs stay what they are, and may
be added again. It also removes what a writer that was killed left a day ago.

With --to it has ClickHouse servers delete the rows that count nowhere and are a day
old: of pushes that were cut off, and of runs that were pushed again. Name all servers
of a cluster.`,
		Example: `  memdiag fleet compact
  memdiag fleet compact --fleet /shared/fleet
  memdiag fleet compact --to clickhouse://db.example.com/memdiag`,
		Args: takes(0, 0, "arguments"),
		RunE: func(*cobra.Command, []string) error {
			a, err := f.server(to)
			switch {
			case err != nil:
				return fleetError(err)
			case a != nil:
				return f.compactServer(a)
			}
			c, err := awaited(f.env, noNews, func() (fleet.Compaction, error) { return fleet.Compact(f.folder(), f.env.now()) })
			if err != nil {
				return f.cannotAdd(err)
			}
			f.env.talk.say("merged %d folders (%s) into %d (%s)", c.Before, snapshot.Bytes(c.BytesBefore), c.After, snapshot.Bytes(c.BytesAfter))
			return nil
		},
	}
	toFlag(cmd, &to)
	return cmd
}

func newFleetSQLCommand(f *fleetFolder) *cobra.Command {
	engine := choice{string(fleet.DuckDB), []string{string(fleet.DuckDB), string(fleet.ClickHouse)}}
	cmd := &cobra.Command{
		Use:   "sql",
		Short: "print views for DuckDB or ClickHouse, one a table",
		Long: `Prints SQL that makes a view of each table in DuckDB or ClickHouse, over the fleet's
files as they are. A ClickHouse server reads files below its user_files_path alone.
Queries on them: ` + docsAddress + `queries.md`,
		Example: `  memdiag fleet sql > fleet.sql && duckdb -init fleet.sql
  memdiag fleet sql --fleet /shared/fleet
  memdiag fleet sql --for clickhouse > fleet.sql`,
		Args: takes(0, 0, "arguments"),
		RunE: func(*cobra.Command, []string) error {
			if _, err := fleet.OpenStore(f.folder()); err != nil {
				return fleetError(err)
			}
			return f.env.result("", false, func(w io.Writer) error { return fleet.WriteViews(w, f.folder(), fleet.Engine(engine.value)) })
		},
	}
	cmd.Flags().Var(&engine, "for", "the engine that runs it")
	completeWords(cmd, "for", engine.of)
	return cmd
}

func newFleetReportCommand(f *fleetFolder) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "report",
		Short: "one HTML page: leaks by cost, ranks over time, all runs",
		Long: `Writes one HTML file that needs neither server nor network: the leaks of all runs by
cost, for the latest leaking runs a heat map of ranks over time and the ranks least
like their peers, and all runs.`,
		Example: `  memdiag fleet report
  memdiag fleet report --fleet /shared/fleet -o /var/www/fleet.html`,
		Args: takes(0, 0, "arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if ending := strings.ToLower(filepath.Ext(output)); output != "-" && ending != ".html" && ending != ".htm" {
				return usagef(cmd, "%s: a report is a .html", output)
			}
			s, err := f.open()
			if err != nil {
				return err
			}
			err = f.env.result(output, false, func(w io.Writer) error { return fleet.Page(w, s, version(), f.env.now()) })
			if err != nil {
				return fleetError(err)
			}
			f.env.wrote(output)
			return nil
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "fleet.html", "write to `FILE`, a .html; - for standard output")
	f.fromFlag(cmd)
	return cmd
}
