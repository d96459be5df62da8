package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// How often progress is shown: often for a person, rarely in a log.
const (
	redrawEvery = 100 * time.Millisecond
	logEvery    = 10 * time.Second
)

// talker is standard error: all messages for people, never data. Its methods may be called from several goroutines.
type talker struct {
	mu    sync.Mutex
	w     io.Writer
	term  terminal
	quiet bool // silences everything but fail
	now   func() time.Time
	// program is the command that runs memdiag.
	program string

	progressed time.Time // when progress was last shown, at first the start
	onLine     bool      // whether an unfinished progress line is on the terminal
	// heard receives each status, whether it is shown or not; nil for none.
	heard func(string)
	ended bool // whether progress is no longer shown, even if something is still computed
}

// say prints one line that begins with the program's name.
func (t *talker) say(format string, args ...any) {
	t.line("memdiag: " + fmt.Sprintf(format, args...))
}

// next prints the memdiag command that a user would probably run next, called as this one was. Paths that a shell would split or expand
// are quoted.
func (t *talker) next(command string, paths ...string) {
	line := "next: " + t.program + " " + command
	for _, path := range paths {
		line += " " + shellPath(path)
	}
	t.line(line)
}

func (t *talker) line(s string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.quiet {
		return
	}
	t.clearLocked()
	fmt.Fprintln(t.w, oneLine(s))
}

// progress shows how far a command has come: on one line of a terminal, else at most one line every ten seconds. Call it whenever there
// is news.
func (t *talker) progress(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.quiet || t.ended {
		return
	}
	inPlace := t.term.tty && !t.term.dumb
	every := logEvery
	if inPlace {
		every = redrawEvery
	}
	now := t.now()
	if now.Sub(t.progressed) < every {
		return
	}
	t.progressed = now
	text := "memdiag: " + oneLine(fmt.Sprintf(format, args...))
	if !inPlace {
		fmt.Fprintln(t.w, text)
		return
	}
	// A line that wraps could not be overwritten.
	if r := []rune(text); t.term.width > 0 && len(r) >= t.term.width {
		text = string(r[:t.term.width-1])
	}
	fmt.Fprint(t.w, "\r\x1b[K", text)
	t.onLine = true
}

// status shows a state on one line of a terminal; it shows nothing without a terminal.
func (t *talker) status(text string) {
	if t.heard != nil {
		t.heard(text)
	}
	if t.term.tty && !t.term.dumb {
		t.progress("%s", text)
	}
}

// clear removes the progress line, if there is one.
func (t *talker) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clearLocked()
}

// divert sends all messages to w, which is no terminal, until back is called.
func (t *talker) divert(w io.Writer) (back func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clearLocked()
	before, term := t.w, t.term
	t.w, t.term = w, terminal{}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.w, t.term = before, term
	}
}

// end removes the progress line, and shows no more progress.
func (t *talker) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clearLocked()
	t.ended = true
}

func (t *talker) clearLocked() {
	if t.onLine {
		fmt.Fprint(t.w, "\r\x1b[K")
		t.onLine = false
	}
}

// fail prints an error and its hint, one line each, even if quiet. An exitError without a cause prints nothing.
func (t *talker) fail(err error) {
	if exit, ok := errors.AsType[*exitError](err); ok && exit.err == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clearLocked()
	fmt.Fprintf(t.w, "memdiag: %s\n", oneLine(err.Error()))
	if hint := hintOf(err); hint != "" {
		fmt.Fprintf(t.w, "hint: %s\n", oneLine(hint))
	}
}

func (t *talker) raw(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = t.w.Write(p) // nobody can be told
}

// oneLine joins lines and escapes what could control a terminal: names from a hostile file may be in errors.
func oneLine(s string) string {
	var b strings.Builder
	for i, line := range strings.Split(strings.TrimRight(s, "\n"), "\n") {
		if i > 0 {
			b.WriteString("; ")
		}
		for _, r := range line {
			if unicode.IsPrint(r) {
				b.WriteRune(r)
			} else {
				b.WriteString(strings.Trim(strconv.QuoteRuneToGraphic(r), "'"))
			}
		}
	}
	return b.String()
}

// shellPath is a path as a word of a shell command that is not taken for a flag.
func shellPath(path string) string {
	if strings.HasPrefix(path, "-") {
		path = "./" + path
	}
	return shellQuote(path)
}

// shellQuote is a word for a shell, quoted if needed. Unprintable characters are escaped for bash, zsh and ksh.
func shellQuote(word string) string {
	plain := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_./:=,+@%", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	var b strings.Builder
	escaped := false
	for rest := word; rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		switch {
		case r == utf8.RuneError && size == 1 || !unicode.IsPrint(r):
			escaped = true
			for _, c := range []byte(rest[:size]) {
				fmt.Fprintf(&b, `\x%02x`, c)
			}
		case r == '\'' || r == '\\':
			b.WriteString(`\` + string(r))
		default:
			b.WriteRune(r)
		}
		rest = rest[size:]
	}
	if escaped {
		return "$'" + b.String() + "'"
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
