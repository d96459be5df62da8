package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/files"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

// Exit codes are part of the interface; `memdiag help exit-codes` lists them.
const (
	exitFine         = 0
	exitLeak         = 1
	exitUsage        = 2
	exitBadInput     = 3
	exitInconclusive = 4
	exitOwn          = 5
)

// exitError ends the command with an exit code. If err is nil, nothing is printed: the output of the command, or of a child, has said
// it.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// notReplacedError says that a command failed before anything was recorded, so the run that it was to replace was put back.
type notReplacedError struct{ failed *exitError }

func (e *notReplacedError) Error() string { return e.failed.Error() }
func (e *notReplacedError) Unwrap() error { return e.failed }

// hinted adds a hint to an error.
type hinted struct {
	err  error
	hint string
}

func withHint(err error, format string, args ...any) error {
	return &hinted{err, fmt.Sprintf(format, args...)}
}

func (e *hinted) Error() string { return e.err.Error() }
func (e *hinted) Unwrap() error { return e.err }

// Hint is printed on a line of its own.
func (e *hinted) Hint() string { return e.hint }

// usagef is an error for arguments that do not fit together.
func usagef(cmd *cobra.Command, format string, args ...any) error {
	return usageOf(cmd, fmt.Errorf(format, args...))
}

// usageOf makes err a usage error. Its hint is the command's usage, unless err has a hint.
func usageOf(cmd *cobra.Command, err error) error {
	if number, ok := errors.AsType[*strconv.NumError](err); ok {
		reason := "want a number"
		if errors.Is(number, strconv.ErrRange) {
			reason = "want a smaller number"
		}
		err = errors.New(strings.Replace(err.Error(), number.Error(), reason, 1))
	}
	if hintOf(err) == "" {
		err = withHint(err, "usage: %s; more with %s --help", cmd.UseLine(), cmd.CommandPath())
	}
	return &exitError{exitUsage, err}
}

// badInput is for input that was read but cannot be used. Errors of readers and missing files need no such mark.
func badInput(err error) error { return &exitError{exitBadInput, err} }

// exitCode maps a command's error to an exit code.
func exitCode(err error) int {
	if exit, ok := errors.AsType[*exitError](err); ok {
		return exit.code
	}
	if _, ok := errors.AsType[*snapshot.FormatError](err); ok {
		return exitBadInput
	}
	if _, ok := errors.AsType[*files.InputError](err); ok {
		return exitBadInput
	}
	if _, ok := errors.AsType[*rundir.NotEmptyError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[*rundir.UnfinishedError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[*rundir.RefusedError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[*report.DeviceError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[*rundir.WriteError](err); ok {
		return exitOwn
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return exitBadInput
	}
	return exitOwn
}

// hintOf returns the outermost hint of err, or "".
func hintOf(err error) string {
	type hinter interface {
		error
		Hint() string
	}
	if h, ok := errors.AsType[hinter](err); ok {
		return h.Hint()
	}
	if f, ok := errors.AsType[*snapshot.FormatError](err); ok {
		return f.Hint
	}
	if w, ok := errors.AsType[*rundir.WriteError](err); ok {
		return writeHint(w)
	}
	return ""
}
