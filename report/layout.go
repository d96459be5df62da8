package report

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"
)

// page collects a text report's lines.
type page struct {
	buf   bytes.Buffer
	width int // 0: do not fold
	paint painter
}

func newPage(o TextOptions) *page { return &page{width: o.Width, paint: painter(o.Color)} }

func (p *page) writeTo(w io.Writer) error {
	_, err := w.Write(p.buf.Bytes())
	return err
}

func (p *page) line(s string) {
	p.buf.WriteString(strings.TrimRight(strings.ReplaceAll(s, noBreak, " "), " "))
	p.buf.WriteByte('\n')
}

// noBreak is a space at which no line is folded. Names from a file never contain it, since Printable escapes it.
const noBreak = "\u00a0"

// glue keeps s on one line.
func glue(s string) string { return strings.ReplaceAll(s, " ", noBreak) }

// prose folds running text at spaces; continuation lines begin with indent. A word wider than the page is folded after its slashes; if
// it has none, it gets a line of its own.
func (p *page) prose(first, indent, text string) {
	line, empty := first, true
	for t := range strings.SplitSeq(text, " ") {
		switch {
		case empty:
			line = p.path(line, indent, t)
		case p.width > 0 && visible(line)+1+visible(t) > p.width:
			p.line(line)
			line = p.path(indent, indent, t)
		default:
			line += " " + t
		}
		empty = false
	}
	p.line(line)
}

// path appends a word to a line. A part that is wider than the page goes to new lines, which break after slashes. It returns the last
// line.
func (p *page) path(line, indent, word string) string {
	for p.width > 0 && visible(line)+visible(word) > p.width {
		cut := 0
		for i, c := range word {
			if c == '/' && i+1 < len(word) && (cut == 0 || visible(line)+visible(word[:i+1]) <= p.width) {
				cut = i + 1
			}
		}
		if cut == 0 {
			break
		}
		p.line(line + word[:cut])
		line, word = indent, word[cut:]
	}
	return line + word
}

// aside puts note at column 36 after text if it fits there, or after two spaces, or else on the lines below.
func (p *page) aside(text, note string) {
	const column = 36
	gap := max(column-visible(text), 2)
	for _, g := range []int{gap, 2} {
		if p.width == 0 || visible(text)+g+visible(note) <= p.width {
			p.line(text + strings.Repeat(" ", g) + note)
			return
		}
	}
	p.line(text)
	p.prose("    ", "     ", note)
}

// column is one column of a table.
type column struct {
	head  string
	right bool // figures
}

// table aligns rows under their heads, indented by two columns. The last column is never padded, and is folded at its spaces if the
// page is narrow.
func (p *page) table(columns []column, rows [][]string) {
	widths := make([]int, len(columns))
	headed := false
	for i, c := range columns {
		widths[i] = visible(c.head)
		headed = headed || c.head != ""
		for _, row := range rows {
			widths[i] = max(widths[i], visible(row[i]))
		}
	}
	write := func(cells []string, style func(string) string) {
		line := "  "
		last := len(columns) - 1
		for i, c := range cells[:last] {
			pad := strings.Repeat(" ", widths[i]-visible(c))
			if columns[i].right {
				line += pad + style(c) + "  "
			} else {
				line += style(c) + pad + "  "
			}
		}
		if columns[last].right {
			p.line(line + strings.Repeat(" ", widths[last]-visible(cells[last])) + style(cells[last]))
			return
		}
		p.prose(line, strings.Repeat(" ", visible(line)), style(cells[last]))
	}
	if headed {
		heads := make([]string, len(columns))
		for i, c := range columns {
			heads[i] = c.head
		}
		write(heads, p.paint.dim)
	}
	for _, row := range rows {
		write(row, func(s string) string { return s })
	}
}

// painter adds colour, or does not.
type painter bool

func (c painter) with(code, s string) string {
	if !c || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (c painter) bold(s string) string   { return c.with("1", s) }
func (c painter) dim(s string) string    { return c.with("2", s) }
func (c painter) red(s string) string    { return c.with("1;31", s) }
func (c painter) yellow(s string) string { return c.with("1;33", s) }
func (c painter) green(s string) string  { return c.with("1;32", s) }

// visible counts the columns that s takes, without the painter's sequences.
func visible(s string) int {
	n := 0
	for {
		i := strings.Index(s, "\x1b[")
		if i < 0 {
			return n + utf8.RuneCountInString(s)
		}
		n += utf8.RuneCountInString(s[:i])
		end := strings.IndexByte(s[i:], 'm')
		if end < 0 {
			return n
		}
		s = s[i+end+1:]
	}
}
