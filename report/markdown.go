package report

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// Markdown writes the comparison for a pull request or a job's summary, in GitHub's dialect: the sentence of Headline, a table of the
// findings, each leak's stack and facts folded below it, and the totals of what changed. Names from a file are in code spans, so that
// they cannot be markup, mentions or links.
func Markdown(w io.Writer, r *diff.Result, o TextOptions) error {
	m := &markdown{}
	m.line("**%s**", plainMarkdown(Headline(r)))
	if text := OutOfMemory(r.Refused); text != "" {
		m.line("")
		m.line("**%s**", plainMarkdown(upperFirst(text)))
	}
	first, last := names(r)
	m.line("")
	m.line("%s compared with %s%s, recorded by %s%s.", codeSpan(first), codeSpan(last), between(r), codeSpan(producer(r.Last)), ruleText(r))
	s := storyOf(r, o)
	if r.Leaks() == 0 {
		m.reserves(s.grown)
	}
	m.findings(slices.Concat(s.leaks, s.maybe))
	if r.Leaks() > 0 {
		m.reserves(s.grown)
	}
	if len(s.listed) > 0 {
		m.line("")
		m.line("<details><summary>%s: %s</summary>", s.title, count(int64(len(s.listed)), "finding"))
		m.table(s.listed[:o.top(len(s.listed))])
		if rest := s.listed[o.top(len(s.listed)):]; len(rest) > 0 {
			m.line("")
			m.line("… %s, %s.", count(int64(len(rest)), "more finding"), signed(growthOf(rest).Bytes))
		}
		m.line("")
		m.line("</details>")
	}
	m.totals(r, s)
	m.reserves(s.reserves)
	for _, text := range []string{s.least, NotSeen(r)} {
		if text != "" {
			m.line("")
			m.line("%s.", plainMarkdown(upperFirst(text)))
		}
	}
	if len(r.Notes) > 0 {
		m.line("")
		for _, n := range r.Notes {
			m.line("- note: %s", plainMarkdown(brief(n)))
		}
	}
	_, err := w.Write(m.buf.Bytes())
	return err
}

type markdown struct{ buf bytes.Buffer }

func (m *markdown) line(format string, args ...any) {
	m.buf.WriteString(strings.TrimRight(strings.ReplaceAll(fmt.Sprintf(format, args...), noBreak, " "), " "))
	m.buf.WriteByte('\n')
}

func (m *markdown) reserves(all []*diff.Reserve) {
	for _, e := range all {
		m.line("")
		m.line("%s", plainMarkdown(upperFirst(reserveText(e))))
	}
}

// findings writes a table of the findings, then the facts of each.
func (m *markdown) findings(list []said) {
	if len(list) == 0 {
		return
	}
	rows := make([]*diff.Finding, len(list))
	for i := range list {
		rows[i] = list[i].Finding
	}
	m.table(rows)
	for _, f := range list {
		m.finding(f.in, f.Finding)
	}
}

func (m *markdown) table(list []*diff.Finding) {
	m.line("")
	m.line("| verdict | rate | growth | blocks | where | cause |")
	m.line("|---|---:|---:|---:|---|---|")
	wheres := make([]where, len(list))
	for i, f := range list {
		wheres[i] = whereFound(f)
	}
	for i, place := range placesApart(wheres) {
		f := list[i]
		g := f.Growth()
		m.line("| %s, %s | %s | %s | %s | %s | %s |", f.Verdict, f.Evidence, plainMarkdown(bytesRate(f.Rate)), signed(grown(f)), grownBlocks(g.Blocks, f.Uncounted),
			strings.ReplaceAll(codeSpan(place), "|", `\|`), plainMarkdown(causeName(f)))
	}
}

// finding writes the stack and the facts of a finding, folded.
func (m *markdown) finding(r *diff.Result, f *diff.Finding) {
	m.line("")
	// A line that begins with a tag is HTML to its end, not Markdown.
	m.line("<details><summary>%s %sat <code>%s</code></summary>", f.Verdict, html.EscapeString(inChild(f)), html.EscapeString(place(f.Rows[0], f.Headline)))
	m.line("")
	m.fenced("text", strings.Join(callsOf(f), "\n"))
	m.line("")
	g := f.Growth()
	grew := "blocks are not counted"
	if !f.Uncounted {
		grew = count(f.Born().Blocks, "block") + " born " + fate(f)
	}
	m.line("- Grew: %s in all, %s", estimate(f, signed(g.Bytes)), grew)
	if text := liveText(r, f); text != "" {
		m.line("- Live now: %s", plainMarkdown(text))
	}
	for _, fact := range findingFacts(r, f) {
		m.line("- %s: %s", fact.Label, plainMarkdown(fact.Text))
	}
	m.line("")
	m.line("</details>")
}

// fenced writes text as a code block of a language.
func (m *markdown) fenced(language, text string) {
	fence := strings.Repeat("`", max(3, longestRun(text, '`')+1))
	m.line("%s%s", fence, language)
	m.line("%s", text)
	m.line("%s", fence)
}

// callsOf are the lines of a finding's stack, outermost call first, with the guilty one marked.
func callsOf(f *diff.Finding) []string {
	var out []string
	for _, l := range stackLines(f.Rows[0].Frames, f.Headline, false) {
		text := "… " + count(int64(l.skipped), l.what)
		if l.frame != nil {
			text = frameText(*l.frame, location(*l.frame))
			if l.headline {
				text += "   <- " + guiltyMark(f)
			}
		}
		out = append(out, text)
	}
	if out == nil {
		return []string{brief(f.Rows[0].Label)}
	}
	return out
}

func (m *markdown) totals(r *diff.Result, s *story) {
	m.line("")
	m.line("| blocks | bytes | call sites |")
	m.line("|---:|---:|---|")
	for _, a := range s.accounts {
		m.line("| %s | %s | %s: %s |", grownBlocks(a.growth.Blocks, r.Uncounted()), signed(a.growth.Bytes), grouped(int64(a.sites)), a.name)
	}
	g := s.total
	m.line("| **%s** | **%s** | %s in all |", grownBlocks(g.Blocks, r.Uncounted()), signed(g.Bytes), grouped(int64(len(r.Rows))))
}

// guiltyMark says what the headline frame of a finding did.
func guiltyMark(f *diff.Finding) string {
	if ofNodes(f) {
		return "the graph ends here"
	}
	if filled(f) {
		return "filled here"
	}
	if f.Headline != frame.Headline(f.Rows[0].Frames) {
		return "allocated by this call"
	}
	return "allocated here"
}

// codeSpan quotes text so that no Markdown reader interprets it.
func codeSpan(text string) string {
	text = strings.ReplaceAll(text, noBreak, " ")
	fence := strings.Repeat("`", longestRun(text, '`')+1)
	if len(fence) > 1 {
		return fence + " " + text + " " + fence
	}
	return fence + text + fence
}

// plainMarkdown escapes text so that no Markdown reader interprets it. A word that looks like a link or a mention becomes code, since
// GitHub and others find these even in escaped text.
func plainMarkdown(text string) string {
	return markdownWord.ReplaceAllStringFunc(text, func(word string) string {
		if linked.MatchString(word) {
			return codeSpan(word)
		}
		var b strings.Builder
		for _, r := range word {
			switch {
			case r == '<':
				b.WriteString("&lt;")
			case r == '>':
				b.WriteString("&gt;")
			case r == '&':
				b.WriteString("&amp;")
			case strings.ContainsRune("\\`*_[]|#!~", r):
				b.WriteByte('\\')
				b.WriteRune(r)
			default:
				b.WriteRune(r)
			}
		}
		return b.String()
	})
}

var (
	markdownWord = regexp.MustCompile(`[^\s|]+|\|`) // a pipe separates cells of a table, even in code
	linked       = regexp.MustCompile(`(?i)@|://|www\.`)
)

// longestRun is the length of the longest run of c.
func longestRun(text string, c rune) int {
	longest, run := 0, 0
	for _, r := range text {
		if r != c {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}
