package record

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

// TestAShortLifeIsReadAgainWhileItGoesOn: a look comes at any moment of it. The process is the test's own.
func TestAShortLifeIsReadAgainWhileItGoesOn(t *testing.T) {
	self, ok := readStat(os.Getpid())
	if !ok {
		t.Skip("no /proc")
	}
	now := time.Now()
	read := func(brief bool, first time.Time) snapshot.Bytes {
		tree := newTree(1, "")
		tree.brief[7] = brief
		f := &followed{TreeProcess: snapshot.TreeProcess{PID: self.pid, Started: self.started, Parent: 7, Points: []snapshot.ProcessPoint{{Anonymous: 1}}}, first: first}
		ctx, cancel := context.WithTimeout(t.Context(), 3*ripening)
		defer cancel()
		tree.ripen(ctx, []*followed{f}, now)
		return f.Points[0].Anonymous
	}
	if got := read(true, now); got < snapshot.MiB {
		t.Errorf("it had %s at most", got)
	}
	if read(false, now) != 1 || read(true, now.Add(-time.Second)) != 1 {
		t.Error("a process of a kind that lives on, or that was seen before, is read again")
	}
}

// TestALifeThatEndsBeforeTheSecondLookIsShort: its parent's next ones are read again.
func TestALifeThatEndsBeforeTheSecondLookIsShort(t *testing.T) {
	now := time.Now()
	tree := newTree(1<<30, "")
	tree.last = now.Add(-time.Second)
	for parent, first := range map[int]time.Time{7: tree.last, 8: tree.last.Add(-time.Second)} {
		id := processID{pid: 1<<30 + parent}
		tree.known[id] = &followed{TreeProcess: snapshot.TreeProcess{PID: id.pid, Parent: parent}, first: first}
	}
	if tree.look(now); !tree.brief[7] || tree.brief[8] {
		t.Errorf("%v", tree.brief)
	}
}
