package main

import (
	"bytes"
	"os"
	"testing"
)

func TestColorIsDecidedOnce(t *testing.T) {
	for _, c := range []struct {
		name    string
		mode    colorMode
		term    terminal
		noColor string
		want    bool
	}{
		{"auto colors a terminal", colorAuto, terminal{tty: true}, "", true},
		{"auto does not color a file", colorAuto, terminal{}, "", false},
		{"auto does not color a dumb terminal", colorAuto, terminal{tty: true, dumb: true}, "", false},
		{"auto obeys NO_COLOR", colorAuto, terminal{tty: true}, "1", false},
		{"always colors a file", colorAlways, terminal{}, "", true},
		{"always is stronger than NO_COLOR", colorAlways, terminal{dumb: true}, "1", true},
		{"never is never", colorNever, terminal{tty: true}, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			getenv := func(name string) string {
				if name == "NO_COLOR" {
					return c.noColor
				}
				return ""
			}
			if got := c.mode.decide(c.term, getenv); got != c.want {
				t.Errorf("color %v, want %v", got, c.want)
			}
		})
	}
}

func TestFilesAndBuffersAreNoTerminals(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if got := newTerminal(file, colorAuto, os.Getenv); got.tty || got.color || got.width != 0 {
		t.Errorf("a file is %+v", got)
	}
	if got := newTerminal(new(bytes.Buffer), colorAuto, os.Getenv); got.tty || got.color || got.width != 0 {
		t.Errorf("a buffer is %+v", got)
	}
}
