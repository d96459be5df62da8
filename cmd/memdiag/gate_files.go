package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/gate"
	"github.com/memdiag/memdiag/report"
)

// gateFiles are the files that a gate writes, any number of them.
type gateFiles struct {
	json, junit, sarif, markdown, gitlab string
	annotations                          choice
}

func (f *gateFiles) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.annotations = choice{"", []string{"github", "gitlab"}}
	flags.StringVar(&f.json, "json", "", "write the decision to `FILE` as JSON")
	flags.StringVar(&f.junit, "junit", "", "write it to `FILE` as JUnit's XML, a test for each leak")
	flags.StringVar(&f.sarif, "sarif", "", "write it to `FILE` as SARIF 2.1.0, for code scanning")
	flags.StringVar(&f.markdown, "markdown", "", "append it to `FILE` as Markdown, such as $GITHUB_STEP_SUMMARY")
	flags.StringVar(&f.gitlab, "codequality", "", "write it to `FILE` as GitLab's code quality report")
	flags.Var(&f.annotations, "annotations", "annotate the leaking lines: in GitHub's log, or in gl-code-quality-report.json, GitLab's artifact codequality")
	completeWords(cmd, "annotations", f.annotations.of)
}

// gitlabReport is the file's name in GitLab's documentation. GitLab's log shows nothing of it.
const gitlabReport = "gl-code-quality-report.json"

// complete sets the files that were requested by a word.
func (f *gateFiles) complete() {
	if f.annotations.value == "gitlab" && f.gitlab == "" {
		f.gitlab = gitlabReport
	}
}

// named are the requested files.
func (f *gateFiles) named() []string {
	return slices.DeleteFunc([]string{f.json, f.junit, f.sarif, f.markdown, f.gitlab}, func(name string) bool { return name == "" })
}

// right reports whether all files, including the baseline, have different names.
func (f *gateFiles) right(baseline string) bool {
	seen := map[string]bool{filepath.Clean(baseline): baseline != ""}
	for _, name := range f.named() {
		if name = filepath.Clean(name); seen[name] {
			return false
		}
		seen[name] = true
	}
	return true
}

// canWrite returns an error if a file could not be written, before hours are spent on its content.
func (g *gateCall) canWrite() error {
	names := g.files.named()
	if g.update {
		names = append(names, g.baseline)
	}
	for _, name := range names {
		within := g.job.out != "" && strings.HasPrefix(filepath.Clean(name), filepath.Clean(g.job.out)+string(filepath.Separator))
		if standard(name) || within { // the folder will be created later
			continue
		}
		var err error
		if info, there := os.Stat(name); name == g.files.markdown && there == nil && info.Mode().IsRegular() {
			err = g.env.appendTo(name, func(io.Writer) error { return nil })
		} else {
			err = replaceable(name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// replaceable returns an error if writeFile could not write a file.
func replaceable(name string) error {
	target := behind(name)
	info, err := os.Stat(name)
	if err == nil && info.IsDir() {
		return cannotWrite(name, errors.New("it is a folder"))
	}
	if err == nil && !info.Mode().IsRegular() {
		return nil // opening a pipe would wait for its reader
	}
	beside, err := os.CreateTemp(filepath.Dir(target), ".memdiag.")
	if err != nil {
		return cannotWrite(name, err)
	}
	_ = beside.Close()
	_ = os.Remove(beside.Name())
	return nil
}

// described is the decision for the files.
func described(d *gate.Decision, ranks []gate.Rank, o *baseline.Outcome) *report.Gate {
	out := &report.Gate{Verdict: d.Verdict, Sentence: d.Sentence, Outcome: o, Ranks: results(ranks), Version: version(), Root: workingFolder()}
	for _, r := range ranks {
		for _, o := range r.Budgets {
			out.Budgets = append(out.Budgets, report.RankBudget{Rank: r.Number, Outcome: o})
		}
	}
	return out
}

// write writes all requested files that it can, and reports the others; the error is the first one. A standard output that nobody reads
// is no error.
func (f *gateFiles) write(env *environment, d *report.Gate) (first error) {
	also := func(err error) {
		if env.stdout.err != nil && errors.Is(err, env.stdout.err) {
			return
		}
		if first == nil {
			first = err
		} else if err != nil {
			env.talk.fail(err)
		}
	}
	for _, out := range []struct {
		path string
		as   func(io.Writer) error
	}{{f.json, d.JSON}, {f.junit, d.JUnit}, {f.sarif, d.SARIF}, {f.gitlab, d.GitLab}} {
		if out.path != "" {
			also(env.result(out.path, false, out.as))
		}
	}
	switch {
	case standard(f.markdown):
		also(env.result(f.markdown, false, d.Markdown))
	case f.markdown != "":
		also(env.appendTo(f.markdown, d.Markdown))
	}
	if f.annotations.value == "github" {
		also(d.GitHub(env.stdout))
	}
	return first
}

// appendTo appends to a file: a job's summary is for all its steps.
func (env *environment) appendTo(path string, write func(io.Writer) error) error {
	return env.fillThere(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, write)
}
