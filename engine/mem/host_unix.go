//go:build unix && !linux

package mem

import "golang.org/x/sys/unix"

// mapMemory takes zeroed pages from the operating system.
func mapMemory(size int64) ([]byte, error) {
	return unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

func unmapMemory(data []byte) error { return unix.Munmap(data) }
