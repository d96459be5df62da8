package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/report"
)

func newPlotCommand(env *environment) *cobra.Command {
	var output string
	options := report.PlotOptions{}
	cmd := &cobra.Command{
		Use:     "plot [RUN | SNAPSHOT SNAPSHOT …]",
		GroupID: groupLook,
		Short:   "draw memory over the steps of a run, with the leak named",
		Long: `Draws live memory by stack, reserved memory and the device's limit over the
steps of a run. Without arguments it takes the run in this folder.`,
		Example: `  memdiag plot my-run
  memdiag plot my-run -o growth.svg`,
		ValidArgsFunction: completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			format := report.PlotFormat(strings.TrimPrefix(strings.ToLower(filepath.Ext(output)), "."))
			if output == "-" {
				format = report.PNG
			}
			if format != report.PNG && format != report.SVG {
				return usagef(cmd, "%s: a plot is a .png or a .svg", output)
			}
			run, err := env.openRun(args)
			if err != nil {
				return err
			}
			if err := spare(cmd, output, run.Files...); err != nil {
				return err
			}
			result, err := analyze(run, diff.ByTrend)
			if err != nil {
				return err
			}
			if err := env.result(output, format == report.PNG, func(w io.Writer) error {
				return report.Plot(w, format, result, options)
			}); err != nil {
				return err
			}
			env.wrote(output)
			return nil
		},
	}
	env.rankFlag(cmd)
	flags := cmd.Flags()
	flags.StringVarP(&output, "output", "o", "growth.png", "write to `FILE`: .png or .svg; - for PNG on standard output")
	flags.StringVar(&options.Title, "title", "", "the plot's title; by default the verdict")
	return cmd
}

// wrote says where a result went, unless that was standard output.
func (env *environment) wrote(path string) {
	if path != "" && path != "-" {
		env.talk.say("%s", fmt.Sprintf("wrote %s", path))
	}
}
