package main

import (
	"context"
	"os/signal"
	"slices"
)

// endedByMore is a context that also ends on signals that would otherwise end memdiag immediately and lose the end of a recording. It
// does not apply to a recorded command, which receives the signals itself.
func endedByMore(ctx context.Context) (more context.Context, stop context.CancelFunc) {
	signals := slices.DeleteFunc(slices.Clone(moreEnds), signal.Ignored)
	if len(signals) == 0 {
		return context.WithCancel(ctx) // signal.NotifyContext without signals would take all
	}
	more, stop = signal.NotifyContext(ctx, signals...)
	context.AfterFunc(more, stop) // a second signal ends memdiag
	return more, stop
}
