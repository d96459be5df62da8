package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/memdiag/memdiag/diff/cause"
)

// Causes writes a table of the catalogue for a terminal.
func Causes(w io.Writer, causes []cause.Cause, o TextOptions) error {
	p := newPage(o)
	p.prose("", "  ", fmt.Sprintf("%s known to memdiag; memdiag explain CAUSE explains one", count(int64(len(causes)), "cause")))
	var rows [][]string
	for _, c := range causes {
		rows = append(rows, []string{c.ID, strings.Join(c.Workloads, " "), c.Name})
	}
	p.table([]column{{"id", false}, {"workloads", false}, {"what it is", false}}, rows)
	return p.writeTo(w)
}

// Cause writes one entry for a terminal. program is the command that runs memdiag.
func Cause(w io.Writer, c *cause.Cause, program string, o TextOptions) error {
	p := newPage(o)
	p.prose("", "  ", p.paint.bold(c.ID)+": "+c.Name)
	p.line("")
	p.labelled("What happens", c.What)
	p.labelled("How it looks", c.Sign)
	p.labelled("Fix", c.Fix+".")
	for _, code := range []struct{ title, text string }{{"Before", c.Before}, {"After", c.After}} {
		p.line("")
		p.line(p.paint.bold(code.title))
		for line := range strings.SplitSeq(code.text, "\n") {
			p.line("    " + strings.ReplaceAll(line, "\t", "    "))
		}
	}
	p.line("")
	if len(c.Workloads) > 0 {
		p.line(p.paint.bold("Try it"))
		for _, line := range tries(c, program) {
			p.line("    " + line)
		}
		p.line("")
	}
	p.labelled("Reported in", strings.Join(c.References, ", "))
	return p.writeTo(w)
}

// tries lists the commands that show a cause on its first workload.
func tries(c *cause.Cause, program string) []string {
	w := c.Workloads[0]
	return []string{fmt.Sprintf("%s record --workload %s --out try-%s", program, w, w), fmt.Sprintf("%s diff try-%s", program, w)}
}

// CausesMarkdown writes entries as Markdown. Several entries get a common first-level heading.
func CausesMarkdown(w io.Writer, causes []cause.Cause) error {
	var b strings.Builder
	level := "#"
	if len(causes) > 1 {
		level = "##"
		b.WriteString("# Causes of memory leaks, and their fixes\n\n" +
			"`memdiag diff` names one of these causes for a finding. `memdiag explain CAUSE` shows an entry in the terminal,\n" +
			"with commands that show it on a built-in workload; `memdiag explain` lists the workloads. `memdiag explain --format md` writes this page.\n\n" +
			"| id | what it is |\n|---|---|\n")
		for _, c := range causes {
			fmt.Fprintf(&b, "| [%s](#%s) | %s |\n", c.ID, c.ID, c.Name)
		}
		b.WriteString("\n")
	}
	for i := range causes {
		c := &causes[i]
		if i > 0 {
			b.WriteString("\n")
		}
		what := c.What
		if len(causes) == 1 { // with several, the table has the names
			what = fmt.Sprintf("**%s.** %s", upperFirst(c.Name), what)
		}
		fmt.Fprintf(&b, "%s %s\n\n%s\n\n*In snapshots:* %s\n\n*Fix:* %s.\n\n", level, c.ID, what, c.Sign, c.Fix)
		code := language(c.Before + c.After)
		fmt.Fprintf(&b, "```%s\n%s\n```\n\nbecomes\n\n```%s\n%s\n```\n\n", code, c.Before, code, c.After)
		if len(causes) == 1 && len(c.Workloads) > 0 {
			fmt.Fprintf(&b, "Try it: `%s`. Workloads: %s.\n\n", strings.Join(tries(c, "memdiag"), "`, then `"), strings.Join(c.Workloads, ", "))
		}
		fmt.Fprintf(&b, "Reported in %s.\n", strings.Join(c.References, ", "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// upperFirst makes the first letter a capital, unless the first word is a name such as train.py.
func upperFirst(s string) string {
	if first, _, _ := strings.Cut(s, " "); strings.Contains(strings.TrimRight(first, ".:"), ".") {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// language is the language of an example, for its colours: Go if it looks like Go, else Python.
func language(code string) string {
	if strings.Contains(code, ":=") || strings.Contains(code, "//") {
		return "go"
	}
	return "python"
}

type causesJSON struct {
	SchemaVersion int              `json:"schema_version"`
	Causes        []causeEntryJSON `json:"causes"`
}

type causeEntryJSON struct {
	ID         string   `json:"id"`
	Name       string   `json:"name"`
	What       string   `json:"what"`
	Sign       string   `json:"sign"`
	Fix        string   `json:"fix"`
	Before     string   `json:"before"`
	After      string   `json:"after"`
	Workloads  []string `json:"workloads"`
	References []string `json:"references"`
}

// CausesJSON writes entries as one indented object.
func CausesJSON(w io.Writer, causes []cause.Cause) error {
	out := causesJSON{SchemaVersion: schemaVersion, Causes: []causeEntryJSON{}}
	for _, c := range causes {
		out.Causes = append(out.Causes, causeEntryJSON{
			ID: c.ID, Name: c.Name, What: c.What, Sign: c.Sign, Fix: c.Fix, Before: c.Before, After: c.After,
			Workloads: append([]string{}, c.Workloads...), References: append([]string{}, c.References...),
		})
	}
	return writeJSON(w, out)
}
