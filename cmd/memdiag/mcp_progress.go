package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// alive is the interval between progress messages while nothing changes. Some agents give up on a call after half a minute of silence.
const alive = 10 * time.Second

// progress reports to a waiting agent what a command is doing, if the agent asked for that with a token. heard takes news, from any
// goroutine; it is repeated at each tick. stop must be called.
func progress(ctx context.Context, r *mcp.CallToolRequest, ticks <-chan time.Time) (heard func(string), stop func()) {
	token := r.Params.GetProgressToken()
	if token == nil {
		return func(string) {}, func() {}
	}
	var lock sync.Mutex
	text, said, began := "", 0, time.Now()
	tell := func(what string) {
		said++
		// If the agent has gone, ctx ends and nothing more is sent.
		_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(said), Message: what})
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-ticks:
				lock.Lock()
				tell(fmt.Sprintf("%s, %.0f s since the call", text, time.Since(began).Seconds()))
				lock.Unlock()
			}
		}
	}()
	heard = func(what string) {
		lock.Lock()
		defer lock.Unlock()
		if what != text {
			text = what
			tell(what)
		}
	}
	return heard, func() {
		close(done)
		<-ended
	}
}
