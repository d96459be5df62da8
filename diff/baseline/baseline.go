// Package baseline compares a run's leaks with a file of known ones, so that a gate fails on new and worse leaks. It
// is pure: the caller provides the clock and the file.
package baseline

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/series"
)

// Version is the version of the file format.
const Version = 1

// File has the known leaks of a program. Parse returns one; the zero value has none.
type File struct {
	Known   []Entry       // sorted by fingerprint, each once
	Library []LibraryLeak // a team's own list, in addition to memdiag's; not part of the file
}

// Entry is one known leak, its owner, and until when it may stay.
type Entry struct {
	Fingerprint string
	Where       string       // for readers; only the fingerprint is matched
	MaxGrowth   *diff.Growth // the allowed growth; nil for any
	Owner       string
	Issue       string
	Reason      string
	Expires     time.Time // the last day on which it is valid, at 00:00 UTC; zero for none
}

const day = "2006-01-02"

// document and record are the YAML form of the file.
type document struct {
	Version any      `yaml:"version"` // must be a whole number; as an int, the library would truncate 1.5 to 1
	Known   []record `yaml:"known"`
}

type record struct {
	Fingerprint string `yaml:"fingerprint"`
	Where       string `yaml:"where,omitempty"`
	MaxGrowth   string `yaml:"max-growth,omitempty"`
	Owner       string `yaml:"owner,omitempty"`
	Issue       string `yaml:"issue,omitempty"`
	Reason      string `yaml:"reason,omitempty"`
	Expires     string `yaml:"expires,omitempty"`
}

// deepest is how deep lists and maps may be nested in flow style ("[[["), and the last column at which they may begin
// in block style ("- - -"). A baseline needs three. The library's memory grows with the square of the depth.
const deepest = 64

// misshapen returns an error for text that is nested more deeply, or that has a second document, which the library
// would not read; nil for none.
func misshapen(text []byte) *Error {
	flow, begun := 0, false
	for _, t := range lexer.Tokenize(string(text)) {
		switch t.Type {
		case token.DocumentHeaderType:
			if begun {
				return newError(text, t.Position.Line, t.Position.Column, "a baseline is one YAML document")
			}
			continue
		case token.CommentType, token.DirectiveType:
			continue
		}
		begun = true
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow--
		}
		block := flow == 0 && (t.Type == token.SequenceEntryType || t.Type == token.MappingKeyType)
		if flow > deepest || block && t.Position.Column > deepest {
			return newError(text, t.Position.Line, t.Position.Column, "the lists are nested too deeply for a baseline")
		}
	}
	return nil
}

// Parse reads a file. Its error is an *Error with the place.
func Parse(text []byte) (*File, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // written by editors on Windows
	if fault := misshapen(text); fault != nil {
		return nil, fault
	}
	var d document
	if err := yaml.UnmarshalWithOptions(text, &d, yaml.Strict()); err != nil {
		return nil, faultOf(err, text)
	}
	switch v := d.Version.(type) {
	case nil:
		return nil, faultAt(text, "$.version", fmt.Errorf("the version is missing; write version: %d", Version))
	case uint64:
		if v != Version {
			return nil, faultAt(text, "$.version", fmt.Errorf("this memdiag reads version %d, not %d", Version, v))
		}
	default:
		return nil, faultAt(text, "$.version", fmt.Errorf("want a whole number; this memdiag reads version %d", Version))
	}
	f := &File{}
	seen := make(map[string]bool)
	for i, r := range d.Known {
		at := fmt.Sprintf("$.known[%d]", i)
		e := Entry{Fingerprint: r.Fingerprint, Where: r.Where, Owner: r.Owner, Issue: r.Issue, Reason: r.Reason}
		if r.Fingerprint == "" {
			return nil, faultAt(text, at, errors.New("a known leak needs its fingerprint"))
		}
		if seen[r.Fingerprint] {
			return nil, faultAt(text, at+".fingerprint", errors.New("this fingerprint is listed twice"))
		}
		seen[r.Fingerprint] = true
		if r.MaxGrowth != "" {
			b, err := series.ParseGrowth(r.MaxGrowth)
			if err != nil {
				return nil, faultAt(text, at+".max-growth", err)
			}
			e.MaxGrowth = &b
		}
		if r.Expires != "" {
			t, err := time.Parse(day, r.Expires)
			if err != nil {
				return nil, faultAt(text, at+".expires", fmt.Errorf("%q is no date; write 2027-01-31", r.Expires))
			}
			e.Expires = t
		}
		f.Known = append(f.Known, e)
	}
	f.sort()
	return f, nil
}

func (f *File) sort() {
	slices.SortFunc(f.Known, func(a, b Entry) int { return cmp.Compare(a.Fingerprint, b.Fingerprint) })
}

// Bytes returns the file, sorted by fingerprint: equal files have equal bytes, and Parse reads them.
func (f *File) Bytes() ([]byte, error) {
	d := document{Version: Version, Known: []record{}}
	sorted := File{Known: slices.Clone(f.Known)}
	sorted.sort()
	for _, e := range sorted.Known {
		r := record{Fingerprint: e.Fingerprint, Where: e.Where, Owner: e.Owner, Issue: e.Issue, Reason: e.Reason}
		if e.MaxGrowth != nil {
			r.MaxGrowth = e.MaxGrowth.String()
		}
		if !e.Expires.IsZero() {
			r.Expires = e.Expires.Format(day)
		}
		d.Known = append(d.Known, r)
	}
	var b bytes.Buffer
	b.WriteString("# Leaks that memdiag gate knows and lets pass. memdiag gate --update-baseline writes it,\n# and keeps owner, issue, reason and expires as people have set them.\n")
	text, err := yaml.MarshalWithOptions(d, yaml.IndentSequence(true))
	b.Write(bytes.TrimSuffix(text, []byte("\n")))
	b.WriteByte('\n') // the library leaves it out after an empty list
	return b.Bytes(), err
}

// Error is an error in a file. Line and Column count from 1, and are 0 if unknown.
type Error struct {
	Line, Column int
	Source       string // the line
	Message      string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Message
	}
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
}

// Excerpt is the line, or the part near the place, with a caret below, in two lines without a newline at the end; ""
// if the place is unknown.
func (e *Error) Excerpt() string {
	if e.Line == 0 {
		return ""
	}
	head := fmt.Sprintf("%5d | ", e.Line)
	source, at := []rune(e.Source), max(0, e.Column-1)
	if from := min(at-widest/2, len(source)-widest); from > 0 {
		source, at = source[from:], at-from
	}
	source = source[:min(widest, len(source))]
	return head + string(source) + "\n" + strings.Repeat(" ", len(head)-2) + "| " + strings.Repeat(" ", at) + "^"
}

// widest is how many characters of a line an excerpt shows.
const widest = 120

func newError(text []byte, line, column int, message string) *Error {
	e := &Error{Message: message}
	lines := strings.Split(string(text), "\n")
	if line >= 1 && line <= len(lines) {
		e.Line, e.Column, e.Source = line, column, strings.ReplaceAll(strings.TrimRight(lines[line-1], "\r"), "\t", " ")
	}
	return e
}

// faultOf converts an error of the YAML library.
func faultOf(err error, text []byte) *Error {
	var at yaml.Error
	if errors.As(err, &at) && at.GetToken() != nil && at.GetToken().Position != nil {
		p := at.GetToken().Position
		message := at.GetMessage()
		if _, ok := errors.AsType[*yaml.TypeError](err); ok { // its message names Go types
			message = "want text; quote it"
		}
		return newError(text, p.Line, p.Column, message)
	}
	message, _, _ := strings.Cut(err.Error(), "\n")
	return newError(text, 0, 0, message)
}

// faultAt returns err with the place of path, or without a place if it has none.
func faultAt(text []byte, path string, err error) *Error {
	p, bad := yaml.PathString(path)
	if bad != nil {
		return newError(text, 0, 0, err.Error())
	}
	node, bad := p.ReadNode(bytes.NewReader(text))
	if bad != nil || node.GetToken() == nil || node.GetToken().Position == nil {
		return newError(text, 0, 0, err.Error())
	}
	at := node.GetToken().Position
	return newError(text, at.Line, at.Column, err.Error())
}
