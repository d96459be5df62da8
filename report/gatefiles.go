package report

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"html"
	"io"
	"net/url"
	"path"
	"regexp"
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/baseline"
)

// site is where a finding is for files that point into sources: a path relative to
// the gate's root where it lies below it, and a line from 1 on; "" and 0 where they
// are not known.
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

// relative is a path told from the gate's root where it lies below it.
func (g *Gate) relative(file string) string {
	file = strings.ReplaceAll(file, `\`, "/")
	if g.Root == "" {
		return file
	}
	return strings.TrimPrefix(file, strings.TrimSuffix(strings.ReplaceAll(g.Root, `\`, "/"), "/")+"/")
}

// told is a text whose paths are told from the gate's root.
func (g *Gate) told(text string) string {
	root := strings.TrimSuffix(Printable(strings.ReplaceAll(g.Root, `\`, "/")), "/")
	if root == "" {
		return text
	}
	begin := regexp.MustCompile(`(^|[\s("'` + "`" + `])` + regexp.QuoteMeta(root+"/"))
	return begin.ReplaceAllString(text, "$1")
}

// title is what a leak is called, with what to do about it in about.
func (g *Gate) title(l *baseline.Leak) string {
	return string(l.State) + " leak: " + g.told(leakText(l))
}

func (g *Gate) about(l *baseline.Leak) string {
	text := upperFirst(brief(l.Why)) + "."
	if c := l.Finding.Cause; c != nil {
		text += " Cause: " + c.Name + ". Fix: " + c.Fix + "."
	}
	return text
}

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
	Failure *junitNote `xml:"failure"`
	Skipped *junitNote `xml:"skipped"`
}

type junitNote struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// JUnit writes the decision as a suite of tests: one for the run, one for each
// leak, and one for each entry of the baseline that lets no leak pass. A leak that passes,
// a run that cannot tell, and an entry are skipped tests, and so is that of the run where leaks
// fail by themselves: there are as many failures as leaks. Names hold no figures, so that a test
// has one history.
func (g *Gate) JUnit(w io.Writer) error {
	whole := junitCase{Name: "the run does not leak", Class: "memdiag.gate"}
	switch g.Verdict {
	case diff.Leak:
		whole.Failure = &junitNote{Message: g.told(g.Sentence), Type: "leak"}
		if len(g.Outcome.Failing()) > 0 { // each is a failure of its own
			whole.Failure, whole.Skipped = nil, &junitNote{Message: g.told(g.Sentence)}
		}
	case diff.Inconclusive:
		whole.Skipped = &junitNote{Message: "inconclusive: " + g.told(g.Sentence)}
	}
	suite := junitSuite{Name: "memdiag gate", Cases: []junitCase{whole}}
	for i := range g.Outcome.Leaks {
		l := &g.Outcome.Leaks[i]
		file, _ := g.site(l.Finding)
		c := junitCase{Name: "no leak " + Printable(l.Fingerprint), Class: cmp.Or(Printable(file), whole.Class)}
		if f := l.Finding; f.Headline >= 0 {
			frame := f.Rows[0].Frames[f.Headline]
			c.Name = "no leak in " + cmp.Or(besidePlace(frame), location(frame)) + " " + Printable(l.Fingerprint)
		}
		if g.Verdict == diff.Leak && !l.Passes() {
			c.Failure = &junitNote{Message: g.title(l), Type: string(l.State), Text: g.about(l)}
		} else {
			c.Skipped = &junitNote{Message: g.title(l), Text: g.about(l)}
		}
		suite.Cases = append(suite.Cases, c)
	}
	for _, fate := range g.Outcome.Fates {
		suite.Cases = append(suite.Cases, junitCase{
			Name: "baseline has " + entryText(fate.Entry), Class: whole.Class,
			Skipped: &junitNote{Message: string(fate.State) + ": " + fateText(fate, g.Outcome.Partial) + owned(fate.Entry)},
		})
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

// GitHub writes a workflow command for each leak, which GitHub's log turns into an
// annotation at its line: an error where it fails, a notice where it passes.
func (g *Gate) GitHub(w io.Writer) error {
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	data := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	for i := range g.Outcome.Leaks {
		l := &g.Outcome.Leaks[i]
		level := "notice"
		if g.Verdict == diff.Leak && !l.Passes() {
			level = "error"
		}
		at := ""
		if file, line := g.site(l.Finding); file != "" {
			at = "file=" + property.Replace(Printable(file)) + ","
			if line > 0 {
				at += fmt.Sprintf("line=%d,", line)
			}
		}
		if _, err := fmt.Fprintf(w, "::%s %stitle=%s::%s\n", level, at, property.Replace(g.title(l)), data.Replace(g.about(l))); err != nil {
			return err
		}
	}
	return nil
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

// GitLab writes a code quality report, which GitLab shows beside the lines of a
// merge request. What it has no line for stands at line 1 of a file of no name.
func (g *Gate) GitLab(w io.Writer) error {
	list := []qualityJSON{}
	for i := range g.Outcome.Leaks {
		l := &g.Outcome.Leaks[i]
		q := qualityJSON{Description: g.title(l) + ". " + g.about(l), Check: ruleOf(l.Finding), Fingerprint: l.Fingerprint, Severity: "info"}
		if g.Verdict == diff.Leak && !l.Passes() {
			q.Severity = "major"
		}
		q.Location.Path, q.Location.Lines.Begin = g.site(l.Finding)
		if q.Location.Path == "" {
			q.Location.Path = "(no line)"
		}
		q.Location.Lines.Begin = max(1, q.Location.Lines.Begin)
		list = append(list, q)
	}
	return writeJSON(w, list)
}

// Markdown writes the decision for a job's summary, in the dialect of GitHub.
func (g *Gate) Markdown(w io.Writer) error {
	word := map[diff.Verdict]string{diff.Leak: "fails", diff.Clean: "passes", diff.Inconclusive: "cannot tell"}[g.Verdict]
	m := &markdown{}
	m.line("## The leak gate %s", word)
	m.line("")
	m.line("%s.", plainMarkdown(upperFirst(g.told(g.Sentence))))
	if len(g.Outcome.Leaks)+len(g.Outcome.Declared)+len(g.Outcome.Fates) > 0 {
		m.line("")
		m.line("| state | rate | where | why | cause |")
		m.line("|---|---:|---|---|---|")
	}
	for i := range g.Outcome.Leaks {
		l := &g.Outcome.Leaks[i]
		about := ""
		if c := l.Finding.Cause; c != nil {
			about = plainMarkdown(c.Name) + "<br>Fix: " + cell(html.EscapeString(c.Fix))
		}
		m.line("| %s | %s | %s | %s | %s |", l.State, plainMarkdown(bytesRate(l.Finding.Rate)), cell(codeSpan(g.told(Place(l.Finding)))), plainMarkdown(brief(l.Why)+owned(l.Entry)), about)
	}
	for _, f := range g.Outcome.Declared {
		m.line("| declared | %s | %s | %s | |", plainMarkdown(bytesRate(f.Rate)), cell(codeSpan(g.told(Place(f)))), plainMarkdown(declaredText(f)))
	}
	for _, f := range g.Outcome.Fates {
		m.line("| %s | | %s | %s | |", f.State, cell(codeSpan(entryText(f.Entry))), plainMarkdown(fateText(f, g.Outcome.Partial)+owned(f.Entry)))
	}
	_, err := w.Write(m.buf.Bytes())
	return err
}

// cell is text, not by plainMarkdown, that ends no cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// uri is a path as SARIF wants it.
func uri(file string) string {
	u := url.URL{Path: file}
	if path.IsAbs(file) {
		u.Scheme = "file"
	}
	return u.String()
}
