package watch

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/report"
)

// fussy is a receiver of leaks that does not take those of some places.
type fussy struct {
	fails map[string]error // by fingerprint
	heard []string
}

func (f *fussy) String() string            { return "--fussy" }
func (f *fussy) Target() string            { return "--fussy somewhere" }
func (f *fussy) Takes(e *report.Live) bool { return e.Kind == report.LiveLeak }
func (f *fussy) Receive(_ context.Context, e *report.Live, _ []byte) error {
	if err := f.fails[e.Fingerprint]; err != nil {
		return err
	}
	f.heard = append(f.heard, e.Fingerprint)
	return nil
}

// outboxOf is a receiver's, which retries when the test has it do so, and what is said of it.
func outboxOf(t *testing.T, to Receiver, folder string) (o *outbox, said *[]string) {
	t.Helper()
	ledger, err := OpenLedger(folder, folder, time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	said = new([]string)
	d := &Deliverer{failed: func(what string) { *said = append(*said, what) }, ledger: ledger, pause: time.Hour, ctx: t.Context()}
	return &outbox{to: to, d: d}, said
}

func leakAt(place string) delivery {
	return delivery{event: alarm(report.LiveLeak, place, "cuda:0", "")}
}
func overAt(place string) delivery {
	return delivery{event: alarm(report.LiveOver, place, "cuda:0", "")}
}

// TestWhatDidNotArriveIsDeliveredAgain: by the same watch, and by the next one. It holds up no other alarm.
func TestWhatDidNotArriveIsDeliveredAgain(t *testing.T) {
	folder, to := t.TempDir(), &fussy{fails: map[string]error{"a": errors.New("busy")}}
	o, said := outboxOf(t, to, folder)
	for _, place := range []string{"a", "b", "a", "c"} {
		o.add(leakAt(place))
	}
	if !slices.Equal(to.heard, []string{"b", "c"}) || len(o.waiting) != 1 || o.retry == nil {
		t.Errorf("heard %q, %d wait", to.heard, len(o.waiting))
	}
	o.again()
	if o.pause != mostPause {
		t.Errorf("tried again after %v", o.pause)
	}
	o.close()
	if len(*said) < 2 || (*said)[0] != "--fussy: busy" || !strings.Contains((*said)[len(*said)-1], "1 alarm not delivered") {
		t.Errorf("%q", *said)
	}
	o, said = outboxOf(t, to, folder)
	o.add(leakAt("a"))
	o.add(leakAt("b"))
	to.fails = nil
	o.again()
	o.again()
	if !slices.Equal(to.heard, []string{"b", "c", "a"}) || o.retry != nil || o.pause != 0 || len(*said) != 1 {
		t.Errorf("heard %q, said %q", to.heard, *said)
	}
}

// TestAnEndWaitsForItsBeginning: of an alarm that is over before it has arrived, and then goes on again, all is heard.
func TestAnEndWaitsForItsBeginning(t *testing.T) {
	to := &fussy{fails: map[string]error{"a": errors.New("busy")}}
	o, said := outboxOf(t, to, t.TempDir())
	o.add(leakAt("a"))
	o.add(overAt("a"))
	o.add(overAt("a"))
	if len(o.waiting) != 2 {
		t.Errorf("%d wait", len(o.waiting))
	}
	to.fails = nil
	o.again()
	o.add(leakAt("a"))
	if !slices.Equal(to.heard, []string{"a", "a"}) || len(*said) != 1 {
		t.Errorf("heard %q, said %q", to.heard, *said)
	}
}

// TestWhatIsRefusedIsNotSentAgain: the same request would be answered alike.
func TestWhatIsRefusedIsNotSentAgain(t *testing.T) {
	to := &fussy{fails: map[string]error{"a": refusal{errors.New("it answers 400 Bad Request")}}}
	o, said := outboxOf(t, to, t.TempDir())
	o.add(leakAt("a"))
	if o.waiting != nil || o.retry != nil || !slices.Equal(*said, []string{"--fussy: it answers 400 Bad Request; this alarm is not sent again"}) {
		t.Errorf("%d wait; %q", len(o.waiting), *said)
	}
}
