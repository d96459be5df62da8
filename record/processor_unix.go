//go:build unix

package record

import (
	"syscall"
	"time"
)

// processorTime is what memdiag itself has taken so far. On a busy machine the clock runs on without it.
func processorTime() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
