//go:build unix

package record

import (
	"os"

	"golang.org/x/sys/unix"
)

// lock takes an exclusive lock on a file, without waiting. The system releases it when the process ends.
func lock(f *os.File) error {
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) //nolint:gosec // a descriptor is small
}

// lockShared takes a shared lock on a file. It waits while another process holds an exclusive lock.
func lockShared(f *os.File) error {
	return unix.Flock(int(f.Fd()), unix.LOCK_SH) //nolint:gosec // a descriptor is small
}
