package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/report"
)

// gateFiles are what a gate writes besides its sentence; any of them at once.
type gateFiles struct {
	json, junit, sarif, markdown, gitlab string
	annotations                          choice
}

func (f *gateFiles) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.annotations = choice{"", []string{"github"}}
	flags.StringVar(&f.json, "json", "", "write the decision to `FILE` as JSON")
	flags.StringVar(&f.junit, "junit", "", "write it to `FILE` as JUnit's XML, a test for each leak")
	flags.StringVar(&f.sarif, "sarif", "", "write it to `FILE` as SARIF 2.1.0, for code scanning")
	flags.StringVar(&f.markdown, "markdown", "", "append it to `FILE` as Markdown, such as $GITHUB_STEP_SUMMARY")
	flags.StringVar(&f.gitlab, "codequality", "", "write it to `FILE` as GitLab's code quality report")
	flags.Var(&f.annotations, "annotations", "print annotations of the leaking lines for the log of: github")
	completeWords(cmd, "annotations", f.annotations.of)
}

// right holds where no two files have one name, that of the baseline among them.
func (f *gateFiles) right(baseline string) bool {
	seen := map[string]bool{filepath.Clean(baseline): true}
	for _, name := range []string{f.json, f.junit, f.sarif, f.markdown, f.gitlab} {
		if name = filepath.Clean(name); name != "." && seen[name] {
			return false
		}
		seen[name] = true
	}
	return true
}

// described is the decision for the files.
func (g *gate) described(code int, ranks []judged, o *baseline.Outcome) *report.Gate {
	d := &report.Gate{Verdict: diff.Clean, Outcome: o, Version: version()}
	switch code {
	case exitLeak:
		d.Verdict = diff.Leak
	case exitInconclusive:
		d.Verdict = diff.Inconclusive
	}
	var said []string
	for _, j := range ranks {
		said = append(said, j.doubt+j.said)
		said = append(said, j.besides()...)
	}
	d.Sentence = strings.Join(said, "; ")
	d.Root, _ = os.Getwd() // without it paths stay as they are
	return d
}

// write writes all that is asked for.
func (f *gateFiles) write(env *environment, d *report.Gate) error {
	for _, out := range []struct {
		path string
		as   func(io.Writer) error
	}{{f.json, d.JSON}, {f.junit, d.JUnit}, {f.sarif, d.SARIF}, {f.gitlab, d.GitLab}} {
		if out.path == "" {
			continue
		}
		if err := env.result(out.path, false, out.as); err != nil {
			return err
		}
	}
	if f.markdown != "" {
		if err := appendTo(f.markdown, d.Markdown); err != nil {
			return err
		}
	}
	if f.annotations.value == "github" {
		return d.GitHub(env.stdout)
	}
	return nil
}

// appendTo writes behind what a file has: a job's summary is of all its steps.
func appendTo(path string, write func(io.Writer) error) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return cannotWrite(path, err)
	}
	return fill(path, file, write)
}
