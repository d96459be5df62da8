package mem

import "golang.org/x/sys/unix"

// mapMemory takes zeroed pages from the operating system, resident at once: so
// the process's own figure counts a segment from when it is taken, as a GPU's
// driver does, and kernels do not fault.
func mapMemory(size int64) ([]byte, error) {
	return unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_POPULATE)
}

func unmapMemory(data []byte) error { return unix.Munmap(data) }
