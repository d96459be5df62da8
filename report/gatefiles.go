package report

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"html"
	"io"
	"net/url"
	"path"
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/baseline"
)

// site is the source position of a finding: a path, relative to the gate's root if it is below it, and a line from 1 on. They are ""
// and 0 if unknown.
func (g *Gate) site(f *diff.Finding) (file string, line int) {
	if f.Headline < 0 || f.Headline >= len(f.Rows[0].Frames) {
		return "", 0
	}
	frame := f.Rows[0].Frames[f.Headline]
	if location(frame) == "" {
		return "", 0
	}
	return g.relative(frame.File), max(0, frame.Line)
}

// relative is a path, relative to the gate's root if it is below it.
func (g *Gate) relative(file string) string { return g.Root.relative(file) }

// told is a text with paths relative to the gate's root.
func (g *Gate) told(text string) string { return g.Root.Text(text) }

type junitSuites struct {
	XMLName xml.Name   `xml:"testsuites"`
	Suite   junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string     `xml:"name,attr"`
	Class   string     `xml:"classname,attr"`
	File    string     `xml:"file,attr,omitempty"`
	Line    int        `xml:"line,attr,omitempty"`
	Failure *junitNote `xml:"failure"`
	Skipped *junitNote `xml:"skipped"`
}

type junitNote struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",cdata"`
}

// JUnit writes the decision as a test suite: one test for the run, one for each leak, and one for each entry of the baseline that
// matches no leak. A leak that passes, an inconclusive run, and an entry are skipped tests. Names contain no figures, so that a test
// keeps one history. A failure's message names line, rate and holder; its text has the facts and the stack.
func (g *Gate) JUnit(w io.Writer) error {
	whole := junitCase{Name: "the run does not leak", Class: "memdiag.gate"}
	switch g.Verdict {
	case diff.Leak:
		whole.Failure = &junitNote{Message: g.told(g.Sentence), Type: "leak", Text: g.summary()}
	case diff.Inconclusive:
		whole.Skipped = &junitNote{Message: "inconclusive: " + g.told(g.Sentence), Text: g.summary()}
	}
	suite := junitSuite{Name: "memdiag gate", Cases: []junitCase{whole}}
	for i := range g.Outcome.Leaks {
		l := &g.Outcome.Leaks[i]
		file, line := g.site(l.Finding)
		c := junitCase{Name: "no leak " + Printable(l.Fingerprint), Class: cmp.Or(Printable(file), whole.Class), File: Printable(file), Line: line}
		if f := l.Finding; f.Headline >= 0 {
			frame := f.Rows[0].Frames[f.Headline]
			c.Name = "no leak in " + cmp.Or(besidePlace(frame), location(frame)) + " " + Printable(l.Fingerprint)
		}
		if g.Verdict == diff.Leak && !l.Passes() {
			c.Failure = &junitNote{Message: g.title(l), Type: string(l.State), Text: g.account(l)}
		} else {
			c.Skipped = &junitNote{Message: g.title(l), Text: g.account(l)}
		}
		suite.Cases = append(suite.Cases, c)
	}
	for _, fate := range g.Outcome.Fates {
		suite.Cases = append(suite.Cases, junitCase{
			Name: "baseline has " + entryText(fate.Entry), Class: whole.Class,
			Skipped: &junitNote{Message: string(fate.State) + ": " + fateText(fate, g.Outcome.Partial) + owned(fate.Entry)},
		})
	}
	for i := range g.Budgets {
		suite.Cases = append(suite.Cases, g.Budgets[i].junit(whole.Class))
	}
	for _, c := range suite.Cases {
		suite.Tests++
		if c.Failure != nil {
			suite.Failures++
		}
		if c.Skipped != nil {
			suite.Skipped++
		}
	}
	text, err := xml.MarshalIndent(junitSuites{Suite: suite}, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, text)
	return err
}

// GitHub writes a workflow command for each leak, from which GitHub makes an annotation at its line: an error if it fails, a notice if
// it passes. If the gate is inconclusive, possible leaks and growth of the process itself are warnings.
func (g *Gate) GitHub(w io.Writer) error {
	for i := range g.Outcome.Leaks {
		l := &g.Outcome.Leaks[i]
		level := "notice"
		if g.Verdict == diff.Leak && !l.Passes() {
			level = "error"
		}
		if err := g.annotate(w, level, l.Finding, g.title(l), lines(g.facts(l))); err != nil {
			return err
		}
	}
	for i := range g.Budgets {
		level := map[string]string{"broken": "error", "unchecked": "warning"}[g.Budgets[i].State()]
		if level == "" {
			continue
		}
		if err := g.annotate(w, level, nil, "memory budget", g.Budgets[i].text()); err != nil {
			return err
		}
	}
	if g.Verdict != diff.Inconclusive {
		return nil
	}
	undecided := g.Outcome.Undecided
	for _, f := range undecided[:min(len(undecided), mostAnnotated)] {
		if err := g.annotate(w, "warning", f, "possible leak: "+g.open(f), lines(g.findingFacts(f))); err != nil {
			return err
		}
	}
	for _, text := range g.unexplained() {
		if err := g.annotate(w, "warning", nil, "the process itself grows", text); err != nil {
			return err
		}
	}
	return nil
}

// mostAnnotated is how many possible leaks become warnings: GitHub shows ten of a step.
const mostAnnotated = 5

// annotate writes one workflow command, at the line of a finding if it has one.
func (g *Gate) annotate(w io.Writer, level string, f *diff.Finding, title, text string) error {
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	data := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	at := ""
	if f != nil {
		if file, line := g.site(f); file != "" {
			at = "file=" + property.Replace(Printable(file)) + ","
			if line > 0 {
				at += fmt.Sprintf("line=%d,", line)
			}
		}
	}
	_, err := fmt.Fprintf(w, "::%s %stitle=%s::%s\n", level, at, property.Replace(title), data.Replace(cmp.Or(text, title)))
	return err
}

type qualityJSON struct {
	Description string `json:"description"`
	Check       string `json:"check_name"`
	Fingerprint string `json:"fingerprint"`
	Severity    string `json:"severity"`
	Location    struct {
		Path  string `json:"path"`
		Lines struct {
			Begin int `json:"begin"`
		} `json:"lines"`
	} `json:"location"`
}

// noPath is the path in a code quality report if the line is unknown.
const noPath = "(no line)"

// GitLab writes a code quality report, which GitLab shows beside the lines of a merge request. An item without a line is at line 1 of
// noPath.
func (g *Gate) GitLab(w io.Writer) error {
	list := []qualityJSON{}
	for i := range g.Outcome.Leaks {
		l := &g.Outcome.Leaks[i]
		q := qualityJSON{Description: g.place(l) + ". " + sentences(g.facts(l)), Check: ruleOf(l.Finding.Cause), Fingerprint: l.Fingerprint, Severity: "info"}
		if g.Verdict == diff.Leak && !l.Passes() {
			q.Severity = "major"
		}
		q.Location.Path, q.Location.Lines.Begin = g.site(l.Finding)
		if q.Location.Path == "" {
			q.Location.Path = noPath
		}
		q.Location.Lines.Begin = max(1, q.Location.Lines.Begin)
		list = append(list, q)
	}
	for i := range g.Budgets {
		if b := &g.Budgets[i]; b.Broken() {
			q := qualityJSON{Description: b.text(), Check: budgetRule, Fingerprint: "budget:" + Printable(b.Budget.String()) + ":" + Printable(b.Of), Severity: "major"}
			q.Location.Path, q.Location.Lines.Begin = noPath, 1
			list = append(list, q)
		}
	}
	return writeJSON(w, list)
}

// Markdown writes the decision for a job's summary, in GitHub's dialect: a table, and folded below it the stack and facts of each leak,
// or of each possible leak if nothing leaks.
func (g *Gate) Markdown(w io.Writer) error {
	word := map[diff.Verdict]string{diff.Leak: "fails", OverBudget: "fails", diff.Clean: "passes", diff.Inconclusive: "cannot tell"}[g.Verdict]
	m := &markdown{}
	m.line("## The leak gate %s", word)
	m.line("")
	m.line("%s.", plainMarkdown(upperFirst(g.told(g.Sentence))))
	o := g.Outcome
	if len(o.Leaks)+len(o.Undecided)+len(o.Declared)+len(o.Fates) > 0 {
		m.line("")
		m.line("| state | rate | where | held by | cause and fix | why |")
		m.line("|---|---:|---|---|---|---|")
	}
	row := func(state baseline.State, f *diff.Finding, why string) {
		about := plainMarkdown(causeName(f))
		if f.Cause != nil && f.Verdict == diff.Leak {
			about += "<br>Fix: " + cell(html.EscapeString(f.Cause.Fix))
		}
		m.line("| %s | %s | %s | %s | %s | %s |", state, plainMarkdown(bytesRate(f.Rate)), cell(codeSpan(g.told(Place(f)))), plainMarkdown(g.told(unglued(held(f)))), about, plainMarkdown(why))
	}
	for i := range o.Leaks {
		l := &o.Leaks[i]
		row(l.State, l.Finding, g.told(brief(l.Why)+owned(l.Entry)))
	}
	undecided := o.Undecided[:min(len(o.Undecided), mostTold)]
	for _, f := range undecided {
		row(baseline.Undecided, f, "only a longer run can tell whether it leaks")
	}
	for _, f := range o.Declared {
		row("declared", f, declaredText(f))
	}
	for _, f := range o.Fates {
		m.line("| %s | | %s | | | %s |", f.State, cell(codeSpan(entryText(f.Entry))), plainMarkdown(fateText(f, o.Partial)+owned(f.Entry)))
	}
	if rest := len(o.Undecided) - len(undecided); rest > 0 {
		m.line("")
		m.line("… %s in doubt.", count(int64(rest), "more finding"))
	}
	for _, text := range g.unexplained() {
		m.line("")
		m.line("%s", plainMarkdown(text))
	}
	details := func(title string, f *diff.Finding, facts []fact) {
		m.line("")
		m.line("<details><summary><code>%s</code></summary>", html.EscapeString(title))
		m.line("")
		m.fenced("text", g.calls(f))
		m.line("")
		for _, fact := range facts {
			m.line("- %s: %s", fact.Label, plainMarkdown(fact.Text))
		}
		m.line("")
		m.line("</details>")
	}
	for i := range o.Leaks[:min(len(o.Leaks), mostTold)] {
		l := &o.Leaks[i]
		details(g.title(l), l.Finding, g.facts(l))
	}
	if len(o.Leaks) == 0 {
		for _, f := range undecided {
			details(g.open(f), f, g.findingFacts(f))
		}
	}
	_, err := w.Write(m.buf.Bytes())
	return err
}

// cell escapes text, which plainMarkdown has not escaped, so that it does not end a table's cell.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// uri is a path as SARIF wants it.
func uri(file string) string {
	u := url.URL{Path: file}
	if path.IsAbs(file) {
		u.Scheme = "file"
	}
	return u.String()
}
