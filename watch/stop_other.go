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

// Stop needs signals, which this system does not have.
func (f *Follower) Stop(context.Context, syscall.Signal, time.Duration) (int, error) {
	return 0, errNoSignals
}

// ParseSignal needs signals, which this system does not have.
func ParseSignal(string) (syscall.Signal, error) { return 0, errNoSignals }

// together does nothing: this system has no process groups.
func together(*exec.Cmd) {}
