//go:build unix

package mem

import "golang.org/x/sys/unix"

// mapMemory takes pages from the operating system; they are zero, and begin on
// a page.
func mapMemory(size int64) ([]byte, error) {
	return unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

func unmapMemory(data []byte) error { return unix.Munmap(data) }
