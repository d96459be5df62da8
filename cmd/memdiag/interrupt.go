package main

import (
	"context"
	"io"
	"runtime/debug"
	"time"
)

// awaited runs compute, which must have no side effects, and stops waiting for it when the command is interrupted; the process then
// ends. While compute runs, tell is called now and then with the time so far.
func awaited[T any](env *environment, tell func(taken time.Duration), compute func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	var none T
	select {
	case <-env.interrupted:
		return none, context.Canceled
	default:
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			if v := recover(); v != nil {
				o.err = &panicError{value: v, stack: debug.Stack()}
			}
			done <- o
		}()
		o.value, o.err = compute()
	}()
	start := time.Now()
	tick := time.NewTicker(redrawEvery)
	defer tick.Stop()
	for {
		select {
		case o := <-done:
			return o.value, o.err
		case <-env.interrupted:
			return none, context.Canceled
		case <-tick.C:
			tell(time.Since(start))
		}
	}
}

// interruptible is a writer that accepts nothing after the command is interrupted.
type interruptible struct {
	io.Writer
	interrupted <-chan struct{}
}

func (w interruptible) Write(p []byte) (int, error) {
	select {
	case <-w.interrupted:
		return 0, context.Canceled
	default:
		return w.Writer.Write(p)
	}
}

// patience is how long a write may take after the command is interrupted. bench then writes its results so far, and a pipe with a
// stalled reader would otherwise block forever.
const patience = 500 * time.Millisecond

// abandoning is a writer that blocks no longer than patience after the command is interrupted; the process then ends.
type abandoning struct {
	io.Writer
	interrupted <-chan struct{}
}

func (w abandoning) Write(p []byte) (int, error) {
	type outcome struct {
		n   int
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		n, err := w.Writer.Write(p)
		done <- outcome{n, err}
	}()
	select {
	case o := <-done:
		return o.n, o.err
	case <-w.interrupted:
	}
	select {
	case o := <-done:
		return o.n, o.err
	case <-time.After(patience):
		return 0, context.Canceled
	}
}
