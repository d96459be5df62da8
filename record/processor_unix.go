//go:build unix

package record

import (
	"syscall"
	"time"
)

// processorTime is the processor time that memdiag has used so far. On a busy machine it advances more slowly than the clock.
func processorTime() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
