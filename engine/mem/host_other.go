//go:build !unix

package mem

import "unsafe"

// mapMemory falls back on the Go heap; what is unmapped goes back when the
// collector comes by.
func mapMemory(size int64) ([]byte, error) {
	const align = 64
	data := make([]byte, size+align)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(data))) % align
	return data[skip : int64(skip)+size : int64(skip)+size], nil
}

func unmapMemory([]byte) error { return nil }
