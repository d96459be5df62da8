package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/watch"
)

// deliveries deliver the alarms of one run.
type deliveries struct {
	alarms *alarms
	env    *environment
	dir    string
	to     *watch.Deliverer // nil before the first look
	before []report.Live    // alarms of the run's past, each with its latest state
}

// take delivers the events of a look. For looks at the past, only the latest state of each alarm is delivered, afterwards.
func (d *deliveries) take(look *watch.Look, events []report.Live, here report.Folder) {
	if d.to == nil || look.Other {
		d.open(look)
	}
	for _, e := range events {
		name, _, is := e.Alarm()
		if !is {
			continue
		}
		d.before = slices.DeleteFunc(d.before, func(b report.Live) bool {
			known, _, _ := b.Alarm()
			return known == name && b.Rank == e.Rank
		})
		d.before = append(d.before, e)
	}
	if look.Past {
		return
	}
	for _, e := range d.before {
		d.to.Deliver(e, here)
	}
	d.before = nil
}

// open starts to deliver alarms of the look's run.
func (d *deliveries) open(look *watch.Look) {
	if d.to != nil {
		d.to.Close(interruptedDeliveries)
	}
	say := func(what string) { d.env.talk.say("%s", what) }
	receivers := d.alarms.receivers(d.env)
	var ledger *watch.Ledger
	if len(receivers) > 0 {
		cache, err := os.UserCacheDir()
		if err == nil {
			ledger, err = watch.OpenLedger(filepath.Join(cache, "memdiag", "watch"), d.dir, look.Ranks[0].Run.Info.Started)
		}
		if err != nil {
			d.env.talk.say("a new watch of this run will repeat its alarms: %v", err)
		}
	}
	d.to = watch.NewDeliverer(receivers, ledger, say)
}

// close waits for deliveries in progress.
func (d *deliveries) close(ctx context.Context) {
	switch {
	case d.to == nil:
	case ctx.Err() != nil:
		d.to.Close(interruptedDeliveries)
	default:
		d.to.Close(lastDeliveries)
	}
}
