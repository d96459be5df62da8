//go:build !unix

package watch

import (
	"context"
	"errors"
	"os/exec"
	"syscall"
	"time"
)

var errNoSignals = errors.New("this system has no signals")

// Stop is for systems with signals.
func (f *Follower) Stop(context.Context, syscall.Signal, time.Duration) (int, error) {
	return 0, errNoSignals
}

// ParseSignal is for systems with signals.
func ParseSignal(string) (syscall.Signal, error) { return 0, errNoSignals }

// together is for systems with groups of processes.
func together(*exec.Cmd) {}
