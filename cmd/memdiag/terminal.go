package main

import (
	"fmt"
	"io"
	"os"
)

// terminal describes a stream's terminal. The zero value is a file or pipe.
type terminal struct {
	tty   bool
	dumb  bool // whether it cannot move its cursor
	width int  // columns; 0 without a terminal: do not fold
	color bool // colour never carries a meaning alone
}

// colorMode is the value of --color.
type colorMode string

const (
	colorAuto   colorMode = "auto"
	colorAlways colorMode = "always"
	colorNever  colorMode = "never"
)

func (m *colorMode) String() string { return string(*m) }

// Type is the type of the value in help.
func (m *colorMode) Type() string { return "when" }

// Set parses the flag.
func (m *colorMode) Set(s string) error {
	switch v := colorMode(s); v {
	case colorAuto, colorAlways, colorNever:
		*m = v
		return nil
	}
	return fmt.Errorf("write auto, always or never")
}

// newTerminal examines w once. A stream that is no *os.File is no terminal.
func newTerminal(w io.Writer, mode colorMode, getenv func(string) string) terminal {
	t := terminal{dumb: getenv("TERM") == "dumb"}
	if f, ok := w.(*os.File); ok {
		t.width, t.tty = columns(f)
	}
	t.color = mode.decide(t, getenv)
	return t
}

// decide applies the mode, then https://no-color.org, then the terminal's abilities.
func (m colorMode) decide(t terminal, getenv func(string) string) bool {
	switch m {
	case colorAlways:
		return true
	case colorNever:
		return false
	}
	return t.tty && !t.dumb && getenv("NO_COLOR") == ""
}
