package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/files"
)

func newDemoCommand(env *environment) *cobra.Command {
	job := recording{workload: "L30", steps: 100, every: 50, backend: choice{value: "cpu"}, limit: 2 * snapshot.GiB}
	cmd := &cobra.Command{
		Use:     "demo",
		GroupID: groupFind,
		Short:   "train a small detector that leaks, and find the leak",
		Long: `Trains a small feature-pyramid detector for 100 steps. Its forward pass retains
its outputs. demo records the run, names the line that leaks, draws the growth,
and writes one page, report.html.`,
		Example: `  memdiag demo
  memdiag demo --fixed`,
		Args: takes(0, 0, "arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if job.out == "" {
				job.out = unused("memdiag-demo")
			}
			dir, err := env.record(cmd.Context(), job)
			if err != nil {
				return err
			}
			run, err := files.OpenRun(dir)
			if err != nil {
				return err
			}
			result, err := analyze(run, diff.ByTrend)
			if err != nil {
				return err
			}
			text := report.TextOptions{Top: 5}
			text.Width, text.Color = env.textShape("")
			if err := report.Text(env.stdout, result, text); err != nil {
				return err
			}
			about := report.About{Name: nameOf(run), Info: run.Info, Version: version(), Commands: commandsFor(run, &atFlag{auto: true})}
			if err := env.draw(dir, result, about); err != nil {
				return err
			}
			if f := result.Findings; result.Leaks() > 0 && f[0].Cause != nil {
				env.talk.next("explain", f[0].Cause.ID)
			} else {
				env.talk.next("diff", dir)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&job.fixed, "fixed", false, "train the repaired variant, which does not leak")
	job.outFlags(cmd, "memdiag-demo")
	return cmd
}

// unused is the name if it is free, else the name with the first number that makes it free.
func unused(name string) string {
	path := name
	for i := 2; ; i++ {
		if _, err := os.Lstat(path); err != nil {
			return path
		}
		path = fmt.Sprintf("%s-%d", name, i)
	}
}

// draw writes the page, the pictures and the profile of a comparison into a folder.
func (env *environment) draw(dir string, result *diff.Result, about report.About) error {
	growth := report.GrowthProfile(result)
	for _, picture := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{"report.html", func(w io.Writer) error { return report.Page(w, result, about) }},
		{"growth.png", func(w io.Writer) error { return report.Plot(w, report.PNG, result, report.PlotOptions{}) }},
		{"growth.svg", func(w io.Writer) error { return report.Plot(w, report.SVG, result, report.PlotOptions{}) }},
		{"flame.svg", func(w io.Writer) error { return report.Flame(w, growth, report.FlameOptions{}) }},
		{"growth.pb.gz", func(w io.Writer) error { return report.Pprof(w, growth) }},
	} {
		path := filepath.Join(dir, picture.name)
		if err := env.result(path, false, picture.write); err != nil {
			return err
		}
		env.wrote(path)
	}
	return nil
}
