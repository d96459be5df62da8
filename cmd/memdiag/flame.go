package main

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/report"
)

func newFlameCommand(env *environment) *cobra.Command {
	var output string
	options := report.FlameOptions{}
	cmd := &cobra.Command{
		Use:     "flame [RUN | SNAPSHOT | SNAPSHOT SNAPSHOT …]",
		GroupID: groupLook,
		Short:   "draw memory by stack: of one snapshot, or the growth between two",
		Long: `Draws a flamegraph: of one snapshot's live memory, or of the growth from the
first snapshot to the last. The SVG opens in any browser and zooms by itself.`,
		Example: `  memdiag flame snapshot_0 snapshot_50
  memdiag flame my-run -o growth.pb.gz   # for go tool pprof`,
		RunE: func(cmd *cobra.Command, args []string) error {
			write, err := flameFormat(cmd, output, options)
			if err != nil {
				return err
			}
			profile, err := profileOf(args)
			if err != nil {
				return err
			}
			if err := env.result(output, strings.HasSuffix(output, ".pb.gz"), func(w io.Writer) error { return write(w, profile) }); err != nil {
				return err
			}
			env.wrote(output)
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&output, "output", "o", "flame.svg", "write to `FILE`: .svg, .pb.gz (pprof) or .folded (folded stacks); - for SVG on standard output")
	flags.StringVar(&options.Title, "title", "", "the flamegraph's title")
	return cmd
}

func flameFormat(cmd *cobra.Command, output string, options report.FlameOptions) (func(io.Writer, *report.Profile) error, error) {
	switch {
	case output == "-", strings.HasSuffix(output, ".svg"):
		return func(w io.Writer, p *report.Profile) error { return report.Flame(w, p, options) }, nil
	case strings.HasSuffix(output, ".pb.gz"):
		return report.Pprof, nil
	case strings.HasSuffix(output, ".folded"), strings.HasSuffix(output, ".txt"):
		return report.Folded, nil
	}
	return nil, usagef(cmd, "%s: a flamegraph is a .svg, a .pb.gz or a .folded", output)
}

// profileOf is one snapshot's live memory, or the growth over several.
func profileOf(args []string) (*report.Profile, error) {
	run, err := openRun(args)
	if err != nil {
		return nil, err
	}
	if len(run.Snapshots) == 1 {
		return report.LiveProfile(run.Snapshots[0]), nil
	}
	result, err := analyze(run, diff.ByTrend)
	if err != nil {
		return nil, err
	}
	return report.GrowthProfile(result), nil
}
