//go:build !unix

package main

import "os"

// columns assumes 80 columns for any character device.
func columns(f *os.File) (int, bool) {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return 0, false
	}
	return 80, true
}
