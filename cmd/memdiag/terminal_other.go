//go:build !unix

package main

import "os"

// columns reports a terminal of 80 columns behind any character device.
func columns(f *os.File) (int, bool) {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return 0, false
	}
	return 80, true
}
