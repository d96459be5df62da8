package main

import (
	"context"
	"io"
	"runtime/debug"
	"time"
)

// awaited runs compute, which changes nothing but what it returns, and stops
// waiting for it once the command is interrupted: the process ends then. While it
// runs, tell is called now and then with the time it has taken.
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

// interruptible is a place to write that takes nothing more once the command is
// interrupted.
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

// patience is how long what takes no more may still take a write once the command is
// interrupted: bench says what it knows by then, and a pipe whose reader stands still
// would be waited for without end.
const patience = 500 * time.Millisecond

// abandoning is a place to write that is waited for no longer than patience once the
// command is interrupted: the process ends then.
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
