//go:build unix

package record

import (
	"os"

	"golang.org/x/sys/unix"
)

// lock takes a file's lock, which the system lets go of with the process.
func lock(f *os.File) error {
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) //nolint:gosec // a descriptor is small
}

// lockShared takes a file's lock beside others that share it, and waits for one that has it alone.
func lockShared(f *os.File) error {
	return unix.Flock(int(f.Fd()), unix.LOCK_SH) //nolint:gosec // a descriptor is small
}
