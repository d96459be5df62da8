// Command torch_reader times the reader of PyTorch snapshots on files, for
// bench/torch_reader.sh: one line a file with the best of several readings and
// the process's peak memory. One file a process makes the peak that file's.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/memdiag/memdiag/snapshot/torch"
)

func main() {
	readings := flag.Int("n", 5, "readings of each file")
	flag.Parse()
	for _, path := range flag.Args() {
		if err := measure(path, *readings); err != nil {
			fmt.Fprintln(os.Stderr, "torch_reader:", err)
			os.Exit(1)
		}
	}
}

// measure reads a file and prints the processor seconds of the best reading, and the peak
// resident memory in KiB.
func measure(path string, readings int) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil {
		return err
	}
	best := time.Duration(1<<63 - 1)
	for range readings {
		start, err := processorTime()
		if err != nil {
			return err
		}
		if _, err := torch.Decode(path, f, info.Size(), torch.Options{}); err != nil {
			return err
		}
		end, err := processorTime()
		if err != nil {
			return err
		}
		best = min(best, end-start)
	}
	peak, err := peakMemory()
	if err != nil {
		return err
	}
	fmt.Printf("%.6f %s\n", best.Seconds(), peak)
	return nil
}

// peakMemory is what this process had in memory at most, in KiB. Getrusage would count
// what its parent had when it forked.
func peakMemory() (string, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "VmHWM:" {
			return fields[1], nil
		}
	}
	return "", errors.New("/proc/self/status has no VmHWM")
}

// processorTime is what all threads of this process have used, so that a busy
// machine does not show, and a collector on another core does.
func processorTime() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, err
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}
