package watch

import (
	"testing"
	"time"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/budget"
	"github.com/memdiag/memdiag/diff/live"
	"github.com/memdiag/memdiag/snapshot"
)

func TestWhenARunIsStopped(t *testing.T) {
	broken, err := budget.Parse(budget.Live, "5MiB")
	if err != nil {
		t.Fatal(err)
	}
	// A suspect that fills the memory within so long, counted from a snapshot of ten minutes ago.
	within := func(state live.State, after time.Duration) Rank {
		last := &snapshot.Snapshot{Mark: snapshot.Mark{Time: time.Now().Add(-10 * time.Minute)}}
		return Rank{Result: &diff.Result{Last: last}, Suspects: []*live.Suspect{{State: state, Finding: &diff.Finding{RunsOut: &diff.Forecast{After: after}}}}}
	}
	over := Rank{Budgets: []budget.Outcome{{Budget: broken, Used: 6 << 20, Allowed: 5 << 20}}}
	for _, c := range []struct {
		name string
		on   []string
		rank Rank
		want string
	}{
		{"a leak is reported", []string{"leak"}, within(live.Alarming, time.Hour), "a leak is reported"},
		{"it is suspected", []string{"leak"}, within(live.Suspected, time.Hour), ""},
		{"memory is full in 20 minutes", []string{"forecast < 30m"}, within(live.Suspected, 30*time.Minute), "memory is full within 30m0s"},
		{"memory is full in 50 minutes", []string{"forecast < 30m"}, within(live.Alarming, time.Hour), ""},
		{"what was suspected is over", []string{"forecast < 30m"}, within(live.Ended, time.Minute), ""},
		{"no pace is known", []string{"forecast < 30m"}, within(live.Alarming, 0), ""},
		{"a budget is broken", []string{"budget"}, over, "a budget is broken"},
		{"a budget is broken, of which nothing was said", []string{"leak"}, over, ""},
		{"the second of two", []string{"budget", "leak"}, within(live.Alarming, time.Hour), "a leak is reported"},
		{"the first of two", []string{"budget", "forecast<1h"}, over, "a budget is broken"},
		{"nothing was said", nil, within(live.Alarming, time.Minute), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var on Condition
			for _, text := range c.on {
				more, err := ParseCondition(text)
				if err != nil {
					t.Fatal(err)
				}
				on = on.Or(more)
			}
			if got := on.Met(&Look{Ranks: []Rank{c.rank}}); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	for _, text := range []string{"", "leaks", "forecast", "forecast < 0s", "forecast < tomorrow", "forecast > 30m"} {
		if got, err := ParseCondition(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

// TestFilesOfTheFutureAreQuietToo: another machine's clock may be ahead of this one's.
func TestFilesOfTheFutureAreQuietToo(t *testing.T) {
	f := new(Follower)
	ahead := state{changed: time.Now().Add(time.Hour)}
	if got := f.quiet(ahead); got < 0 || got > grace/2 {
		t.Errorf("it has just changed: %v", got)
	}
	f.since = f.since.Add(-time.Minute)
	if got := f.quiet(ahead); got < time.Minute {
		t.Errorf("a minute later: %v", got)
	}
	if got := f.quiet(state{changed: ahead.changed.Add(time.Second)}); got > grace/2 {
		t.Errorf("it has changed again: %v", got)
	}
	if got := f.quiet(state{changed: time.Now().Add(-time.Hour)}); got < time.Hour {
		t.Errorf("it changed an hour ago: %v", got)
	}
}
