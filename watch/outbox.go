package watch

import (
	"fmt"
	"time"
)

// outbox is what a receiver has yet to get, in its order.
type outbox struct {
	to      Receiver
	d       *Deliverer
	waiting []delivery
	retry   <-chan time.Time // nil unless something waits
	pause   time.Duration    // before the next try
	tried   time.Time        // when the last one was
}

// add sends an event, unless the receiver knows of it, or others wait before it.
func (o *outbox) add(next delivery) {
	if !o.to.Takes(&next.event) {
		if _, begins, _ := next.event.Alarm(); !begins {
			_ = o.d.ledger.arrived(o.to.Target(), &next.event) // so that the next alarm there is news; else it is said with that
		}
		return
	}
	if len(o.waiting) == waiting {
		o.d.failed(fmt.Sprintf("%s: an alarm is left out: %d wait already", o.to, waiting))
		return
	}
	o.waiting = append(o.waiting, next)
	if len(o.waiting) == 1 {
		o.send()
	}
}

// send gives the receiver what waits, up to what does not arrive. A repeater sends it again anyway.
func (o *outbox) send() {
	o.retry, o.tried = nil, time.Now()
	_, repeats := o.to.(repeater)
	for len(o.waiting) > 0 {
		next := &o.waiting[0]
		if repeats || o.d.ledger.news(o.to.Target(), &next.event) {
			if err := o.to.Receive(o.d.ctx, &next.event, next.text); err != nil {
				if o.pause == 0 || repeats { // else it was said
					o.d.failed(fmt.Sprintf("%s: %v", o.to, err))
				}
				if !repeats {
					o.pause = min(max(o.d.pause, 2*o.pause), mostPause)
					o.retry = time.After(o.pause)
					return
				}
			} else if err := o.d.ledger.arrived(o.to.Target(), &next.event); err != nil && !repeats {
				o.d.failed(fmt.Sprintf("what has arrived cannot be noted: %v", err))
			}
		}
		o.waiting, o.pause = o.waiting[1:], 0
	}
}

// close tries once more what did not just fail, and says what has not arrived.
func (o *outbox) close() {
	if len(o.waiting) > 1 || len(o.waiting) == 1 && time.Since(o.tried) > o.d.pause {
		o.send()
	}
	if n := len(o.waiting); n > 0 && o.d.ledger != nil {
		o.d.failed(fmt.Sprintf("%s: %s not delivered; memdiag watch of this run delivers what goes on", o.to, plural(n, "alarm")))
	}
}
