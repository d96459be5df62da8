package watch

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// outbox holds the events that a receiver has yet to receive, in order.
type outbox struct {
	to      Receiver
	d       *Deliverer
	waiting []delivery
	retry   <-chan time.Time // nil if nothing waits
	pause   time.Duration    // before the next try; 0 if nothing waits
	said    string           // why the last delivery failed; "" if it arrived
}

// add sends an event, unless an earlier event of the same alarm waits.
func (o *outbox) add(next delivery) {
	rank, name, begins := next.alarm()
	if !o.to.Takes(&next.event) && begins {
		return
	}
	for _, w := range slices.Backward(o.waiting) {
		if r, n, b := w.alarm(); r == rank && n == name {
			if b == begins {
				return // it will say the same
			}
			break
		}
	}
	if begins && len(o.waiting) >= waiting {
		o.d.failed(fmt.Sprintf("%s: an alarm is left out: %d wait already", o.to, waiting))
		return
	}
	o.waiting = append(o.waiting, next)
	o.send(time.Time{})
}

// send delivers the waiting events that were last tried before a time. An event that does not arrive delays only later events of the
// same alarm.
func (o *outbox) send(before time.Time) {
	type alarm struct {
		rank int
		name string
	}
	held := make(map[alarm]bool)
	var left []delivery
	for _, next := range o.waiting {
		rank, name, _ := next.alarm()
		of := alarm{rank, name}
		if held[of] || next.tried.After(before) || !o.give(&next) {
			held[of] = true
			left = append(left, next)
		}
	}
	switch o.waiting = left; {
	case left == nil:
		o.retry, o.pause = nil, 0
	case o.retry == nil:
		o.pause = min(max(o.d.pause, 2*o.pause), mostPause)
		o.retry = time.After(o.pause)
	}
}

// again retries all waiting events.
func (o *outbox) again() {
	o.retry = nil
	o.send(time.Now())
}

// give delivers an event, and reports whether it is done. An event that the receiver need not receive is recorded, so that the next
// alarm counts as new.
func (o *outbox) give(next *delivery) bool {
	if !o.d.ledger.news(o.to.Target(), &next.event) && !o.repeats() {
		return true
	}
	if o.to.Takes(&next.event) {
		next.tried = time.Now()
		err := o.to.Receive(o.d.ctx, &next.event, next.text)
		_, refused := errors.AsType[refusal](err)
		switch {
		case err == nil:
			o.said = ""
		case o.repeats():
			o.say(err) // the receiver repeats it anyway
			return true
		case refused:
			o.d.failed(fmt.Sprintf("%s: %v; this alarm is not sent again", o.to, err))
			return true
		default:
			o.say(err)
			return false
		}
	}
	if err := o.d.ledger.arrived(o.to.Target(), &next.event); err != nil && !o.repeats() {
		o.d.failed(fmt.Sprintf("what has arrived cannot be noted: %v", err))
	}
	return true
}

// say reports why a delivery failed, once until something arrives or the error changes. When the watch ends, close reports what is
// left.
func (o *outbox) say(err error) {
	if text := err.Error(); text != o.said && o.d.ctx.Err() == nil {
		o.said = text
		o.d.failed(fmt.Sprintf("%s: %s", o.to, text))
	}
}

func (o *outbox) repeats() bool {
	_, is := o.to.(repeater)
	return is
}

// close retries what did not just fail, and reports what has not arrived.
func (o *outbox) close() {
	o.send(time.Now().Add(-o.d.pause))
	n := 0
	for _, w := range o.waiting {
		if o.to.Takes(&w.event) {
			n++
		}
	}
	switch said := fmt.Sprintf("%s: %s not delivered", o.to, plural(n, "alarm")); {
	case n > 0 && o.d.ledger != nil:
		o.d.failed(said + "; memdiag watch of this run delivers what goes on")
	case n > 0 && o.d.ctx.Err() != nil:
		o.d.failed(said)
	}
}

// alarm is the alarm of a delivery, and whether it begins it.
func (d *delivery) alarm() (rank int, name string, begins bool) {
	name, begins, _ = d.event.Alarm()
	return d.event.Rank, name, begins
}
