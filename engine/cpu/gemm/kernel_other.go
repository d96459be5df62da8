//go:build !amd64 || noasm

package gemm

// kernels returns what this processor can run, the fastest first.
func kernels() []*kernel { return []*kernel{portable()} }
