package main

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/doctor"
	"github.com/memdiag/memdiag/report"
)

func newLintCommand(env *environment) *cobra.Command {
	format := choice{"text", []string{"text", "json"}}
	var flagged *judging
	cmd := &cobra.Command{
		Use:     "lint RUN",
		GroupID: groupFind,
		Short:   "lines of a recorded Python program that look like a leak's cause, with their measured growth",
		Long: `Parses your files on the recorded stacks with Python's ast, without running them. It lists
lines that look like a known cause: a loss stored with its graph, a list that only grows, a
hook without a handle, a cache on a method, a mutable default. For each line it says whether
memory grows there in the run, or the line was not reached. Files are read as they are now.
The exit code is 1 if a suspicious line grows.`,
		Example: `  memdiag lint my-run
  memdiag lint --format json my-run`,
		Args: takes(1, 1, "run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			options, err := flagged.complete(env)
			if err != nil {
				return err
			}
			run, err := env.openRun(args)
			if err != nil {
				return err
			}
			result, err := env.analyze(run, options)
			if err != nil {
				return err
			}
			python, err := pythonOnPath()
			if err != nil {
				return err
			}
			found, err := doctor.Lint(cmd.Context(), result, python, env.within)
			if err != nil {
				return err
			}
			here := workingFolder()
			for i := range found.Suspects {
				found.Suspects[i].Growth = here.Text(found.Suspects[i].Growth)
				for _, folder := range here {
					if below, err := filepath.Rel(folder, found.Suspects[i].File); err == nil && filepath.IsLocal(below) {
						found.Suspects[i].File = below
					}
				}
			}
			env.talk.clear()
			if err := writeSuspects(env.stdout, found, format.value); err != nil {
				return err
			}
			if len(found.Suspects) > 0 && found.Suspects[0].Measured == doctor.Grows {
				return &exitError{code: exitLeak}
			}
			if result.Leaks() > 0 {
				env.talk.next("diff", args...)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.Var(&format, "format", "format on standard output: text or json")
	completeWords(cmd, "format", format.of)
	flagged = judgingFlags(cmd)
	return cmd
}

func writeSuspects(w io.Writer, found *doctor.Linted, format string) error {
	if format == "json" {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(found)
	}
	var b strings.Builder
	for _, s := range found.Suspects {
		fmt.Fprintf(&b, "%s:%d: %s: %s (%s)\n", report.Printable(s.File), s.Line, s.Measured, report.Printable(s.Says), s.Cause)
		if s.Growth != "" {
			fmt.Fprintf(&b, "    %s\n", report.Printable(s.Growth))
		}
	}
	for _, s := range found.Skipped {
		fmt.Fprintf(&b, "note: %s\n", report.Printable(s))
	}
	if len(found.Suspects) == 0 {
		files := "files"
		if found.Files == 1 {
			files = "file"
		}
		fmt.Fprintf(&b, "no suspicious line in %d %s\n", found.Files, files)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
