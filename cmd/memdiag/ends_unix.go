//go:build unix

package main

import (
	"os"
	"syscall"
)

// moreEnds are the terminal's quit signal, and signals that SLURM can send before a job's time is over.
var moreEnds = []os.Signal{syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGXCPU}
