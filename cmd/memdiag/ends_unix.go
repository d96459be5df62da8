//go:build unix

package main

import (
	"os"
	"syscall"
)

// moreEnds are the quit of a terminal, and what SLURM is asked to send before a job's time is over.
var moreEnds = []os.Signal{syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGXCPU}
