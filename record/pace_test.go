package record

import (
	"testing"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

// TestLooksTakeTheirShareOfAProcessor: the first ones may take more, and a crowd is looked at less often.
func TestLooksTakeTheirShareOfAProcessor(t *testing.T) {
	const took = 20 * time.Millisecond
	for _, c := range []struct {
		processes int
		least     int // looks in a minute
		most      int
		apart     time.Duration // of the last two at most
	}{
		{300, 60, 80, 3 * time.Second},
		{2, 40, 400, 2*time.Second + took}, // of few processes a look is late because the machine is busy
	} {
		start := time.Now()
		h := &host{tree: &tree{largest: c.processes}, began: start, credit: hostAllowance, paid: start}
		looks, now, last := 0, start, start
		for ; now.Sub(start) < time.Minute; looks++ {
			last = now
			h.pay(now, took)
			now = now.Add(250 * time.Millisecond)
			if now.Before(h.rest) {
				now = h.rest
			}
		}
		if looks < c.least || looks > c.most || now.Sub(last) > c.apart {
			t.Errorf("of %d processes: %d looks, the last two %s apart", c.processes, looks, now.Sub(last))
		}
		if share := float64(looks) * float64(took) / float64(time.Minute); c.processes > many && share > hostShare+float64(hostAllowance+took)/float64(time.Minute) {
			t.Errorf("they took %.4f of the time", share)
		}
	}
}

// TestAProcessThatWaitsIsNotReadAgain: of a crowd most do; here it is known by there being no such process.
func TestAProcessThatWaitsIsNotReadAgain(t *testing.T) {
	none := process{processID: processID{pid: 1 << 30}, used: used{pages: pages{resident: 1 << 20, faults: 7}}}
	f := &followed{status: status{anonymous: 5 * snapshot.MiB}, then: none.used}
	if !f.look(none) || f.status.anonymous != 5*snapshot.MiB {
		t.Error("it was read")
	}
	for name, more := range map[string]pages{"a fault": {1 << 20, 8}, "a page less": {1<<20 - 4096, 7}} {
		if none.pages = more; f.look(none) {
			t.Errorf("%s: it was not read", name)
		}
	}
}
