package fleet

import (
	"os"

	"golang.org/x/sys/unix"
)

// exchange swaps two folders in one step, if the file system can.
func exchange(a, b string) error {
	err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	if err == unix.ENOENT {
		return os.ErrNotExist
	}
	if err == nil {
		return nil
	}
	return swap(a, b)
}
