//go:build !linux

package fleet

// exchange swaps two folders.
func exchange(a, b string) error { return swap(a, b) }
