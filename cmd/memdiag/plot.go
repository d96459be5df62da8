package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/report"
)

func newPlotCommand(env *environment) *cobra.Command {
	var output string
	var sheet, ranks bool
	options := report.PlotOptions{}
	stack := choice{string(report.StackLeaks), []string{string(report.StackLeaks), string(report.StackSites), string(report.StackOwners), string(report.StackRoles)}}
	var flagged *judging
	cmd := &cobra.Command{
		Use:     "plot [RUN | SNAPSHOT SNAPSHOT …]",
		GroupID: groupLook,
		Short:   "draw memory over the steps of a run, with the leak named",
		Long: `Draws live memory by stack, reserved memory and the device's limit over the steps of
a run, the slope of a leak with its interval, and when memory runs out if that is near.
If no device grows, it draws the process that does, or all processes by role. Without
arguments it takes the run in this folder.`,
		Example: `  memdiag plot my-run
  memdiag plot my-run --stack owners -o growth.svg
  memdiag plot my-run --sheet -o sheet.pdf`,
		ValidArgsFunction: completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch given := cmd.Flags().Changed("output"); {
			case sheet && !given:
				output = "sheet.png"
			case ranks && !given:
				output = "ranks.png"
			}
			format := report.PlotFormat(strings.TrimPrefix(strings.ToLower(filepath.Ext(output)), "."))
			if output == "-" {
				format = report.PNG
			}
			if format != report.PNG && format != report.SVG && format != report.PDF {
				return usagef(cmd, "%s: a plot is a .png, a .svg or a .pdf", output)
			}
			if sheet && ranks {
				return usagef(cmd, "--sheet draws call sites, --ranks draws ranks: choose one")
			}
			options.Stack = report.Stacking(stack.value)
			run, err := env.openRun(args)
			if err != nil {
				return err
			}
			if err := spare(cmd, output, run.Files...); err != nil {
				return err
			}
			judging, err := flagged.complete(env)
			if err != nil {
				return err
			}
			if ranks && cmd.Flags().Changed("rank") {
				return usagef(cmd, "--ranks draws all ranks, --rank chooses one: choose")
			}
			if ranks && len(run.Ranks) < 2 {
				return badInput(withHint(errors.New("the run is of one process: it has no ranks to draw"), "leave out --ranks"))
			}
			result, all, err := env.judge(cmd, run, judging)
			if err != nil {
				return err
			}
			if err := roomForFont(format); err != nil {
				return err
			}
			relativeTo(workingFolder(), result, all)
			if err := env.result(output, format != report.SVG, func(w io.Writer) error {
				switch {
				case sheet:
					return report.Sheet(w, format, result, options)
				case ranks:
					return report.RankSheet(w, format, all, options)
				}
				return report.Plot(w, format, result, options)
			}); err != nil {
				return err
			}
			env.wrote(output)
			return nil
		},
	}
	env.rankFlag(cmd)
	env.symbolsFlag(cmd)
	flagged = judgingFlags(cmd)
	flags := cmd.Flags()
	flags.StringVarP(&output, "output", "o", "growth.png", "write to `FILE`: .png, .svg or .pdf; - for PNG on standard output")
	flags.Var(&stack, "stack", "what each band is: leaks, the largest call sites, owners (what holds a reference), or roles (the processes of the command)")
	completeWords(cmd, "stack", stack.of)
	flags.BoolVar(&sheet, "sheet", false, "draw a small plot for each of the call sites that change most, by default to sheet.png")
	flags.BoolVar(&ranks, "ranks", false, "draw a small plot for each rank, on one scale, by default to ranks.png")
	flags.StringVar(&options.Device, "device", "", "the `DEVICE` to draw, such as cuda:0; by default that of the first finding")
	flags.StringVar(&options.Title, "title", "", "the plot's title; by default the verdict")
	return cmd
}

// roomForFont returns an error if a PDF's font has no room: vgpdf writes it and derived files, less than 1 MiB, to temporary files, and
// panics if it cannot.
func roomForFont(format report.PlotFormat) error {
	if format != report.PDF {
		return nil
	}
	dir, err := os.MkdirTemp("", "memdiag-font-")
	if err == nil {
		defer os.RemoveAll(dir) //nolint:errcheck // nothing of it is needed
		err = os.WriteFile(filepath.Join(dir, "font"), make([]byte, 1<<20), 0o600)
	}
	if err != nil {
		return &exitError{exitOwn, withHint(fmt.Errorf("a PDF needs 1 MiB in temporary files: %w", err), "set TMPDIR, or take a .svg")}
	}
	return nil
}

// wrote reports where a result was written, unless that is standard output.
func (env *environment) wrote(path string) {
	if path != "" && path != "-" {
		env.talk.say("%s", fmt.Sprintf("wrote %s", path))
	}
}
