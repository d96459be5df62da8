package main

import (
	"context"
	"os/signal"
	"slices"
)

// endedByMore is a context that ends by a signal which else would end memdiag at once, and with
// it lose the end of a recording. A recorded command is ended by none: it gets them itself.
func endedByMore(ctx context.Context) (more context.Context, stop context.CancelFunc) {
	signals := slices.DeleteFunc(slices.Clone(moreEnds), signal.Ignored)
	if len(signals) == 0 {
		return context.WithCancel(ctx) // signal.NotifyContext would take all that there are
	}
	more, stop = signal.NotifyContext(ctx, signals...)
	context.AfterFunc(more, stop) // a second one ends memdiag
	return more, stop
}
