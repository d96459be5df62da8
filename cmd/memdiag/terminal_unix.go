//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// columns returns the width of f's terminal, or 80 if it is unknown, and whether f is a terminal: only a terminal answers the request.
func columns(f *os.File) (int, bool) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, false
	}
	if size.Col == 0 {
		return 80, true
	}
	return int(size.Col), true
}
