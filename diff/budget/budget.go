// Package budget compares a run's memory with limits that a user sets. It is pure: a run is checked in the same way
// after its end and while it goes on.
package budget

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
)

// Meter is what a budget limits.
type Meter string

// The meters. Live memory of a GPU or of another allocator is its allocated memory; that of a process is its resident
// memory, that of a role the private memory of its processes together.
const (
	Live     Meter = "live"     // at the end
	Peak     Meter = "peak"     // the highest live memory
	Reserved Meter = "reserved" // taken from the driver, at any mark
	Growth   Meter = "growth"   // of live memory, from the end of warm-up to the end of the run
)

// Meters returns all meters.
func Meters() []Meter { return []Meter{Live, Peak, Reserved, Growth} }

// Budget is one limit.
type Budget struct {
	Meter Meter
	// Where is a device ("cuda:0"), a kind of device ("cuda"), "process", a role of processes ("loader worker"),
	// "shared memory" or "cgroup". "" is each GPU, or the process if there is none.
	Where string
	Bytes snapshot.Bytes // 0 with a Share
	Share float64        // share of the measured device's or process's limit, above 0 and at most 1; 0 with Bytes
	text  string         // as a user wrote it
}

// Parse reads "12GiB", "90%", "cuda:0=12GiB" or "loader worker=200MB".
func Parse(meter Meter, text string) (Budget, error) {
	b := Budget{Meter: meter, text: text}
	size := text
	if at := strings.LastIndexByte(text, '='); at >= 0 {
		b.Where, size = strings.TrimSpace(text[:at]), text[at+1:]
		if b.Where == "" {
			return b, errors.New("want SIZE or WHERE=SIZE, such as cuda:0=12GiB")
		}
	}
	if share, ok := strings.CutSuffix(strings.TrimSpace(size), "%"); ok {
		percent, err := strconv.ParseFloat(strings.TrimSpace(share), 64)
		if err != nil || !(percent > 0 && percent <= 100) {
			return b, fmt.Errorf("%q is no share of a limit; write 90%%", size)
		}
		b.Share = percent / 100
		return b, nil
	}
	var err error
	if b.Bytes, err = snapshot.ParseBytes(size); err == nil && b.Bytes < 0 {
		err = errors.New("a budget is not negative")
	}
	return b, err
}

// String is the flag that sets it: "--max-peak cuda:0=12GiB".
func (b Budget) String() string {
	if strings.ContainsAny(b.text, " \t") {
		return fmt.Sprintf("--max-%s %q", b.Meter, b.text)
	}
	return fmt.Sprintf("--max-%s %s", b.Meter, b.text)
}

// Outcome is the comparison of a budget with one device, process or role.
type Outcome struct {
	Budget  Budget
	Of      string         // "cuda:0", "the process", "loader worker"; "" if the run has nothing of that name
	Several int            // number of processes that are measured together; 0 for one, or for no process
	Used    snapshot.Bytes // the figure that is limited
	Allowed snapshot.Bytes
	At      string // where in the run Used was, "at step 40"; "" for the run's end, or if unknown
	// Limit is the memory limit of the measured device or process, if the budget is above it; else 0.
	Limit snapshot.Bytes
	// Unchecked is why it could not be checked; "" if it was.
	Unchecked string
}

// Broken reports whether more is used than the budget allows.
func (o *Outcome) Broken() bool { return o.Unchecked == "" && o.Used > o.Allowed }

// State is "broken", "kept" or "unchecked".
func (o *Outcome) State() string {
	switch {
	case o.Unchecked != "":
		return "unchecked"
	case o.Broken():
		return "broken"
	}
	return "kept"
}

// String is one sentence, without a full stop: "over budget: cuda:0 has …".
func (o *Outcome) String() string {
	return map[string]string{"broken": "over budget: ", "kept": "within budget: ", "unchecked": "budget not checked: "}[o.State()] + o.Said()
}

// Said is String without its beginning.
func (o *Outcome) Said() string {
	if o.Unchecked != "" {
		return fmt.Sprintf("%s: %s", o.Budget, o.Unchecked)
	}
	uses := fmt.Sprintf("%s %s %s", o.Of, o.verb(), o.Used)
	if o.Several > 0 {
		uses = fmt.Sprintf("%s (%d processes) %s %s", o.Of, o.Several, o.verb(), o.Used)
	}
	if o.At != "" {
		uses += " " + o.At
	}
	allowed := o.Budget.String()
	if o.Budget.Share > 0 {
		allowed += ", which is " + o.Allowed.String()
	}
	if o.Limit > 0 {
		allowed += fmt.Sprintf(", which is more than the limit of %s", o.Limit)
	}
	if o.Broken() {
		return fmt.Sprintf("%s, %s too much (%s)", uses, o.Used-o.Allowed, allowed)
	}
	return fmt.Sprintf("%s (%s)", uses, allowed)
}

func (o *Outcome) verb() string {
	switch o.Budget.Meter {
	case Peak:
		return "had a peak of"
	case Reserved:
		return "reserved"
	case Growth:
		return "grew after warm-up by"
	}
	return "has"
}

// Broken reports whether any of the budgets is.
func Broken(all []Outcome) bool {
	for i := range all {
		if all[i].Broken() {
			return true
		}
	}
	return false
}

// Unchecked reports whether any of the budgets could not be checked.
func Unchecked(all []Outcome) bool {
	for i := range all {
		if all[i].Unchecked != "" {
			return true
		}
	}
	return false
}

// Across leaves out outcomes of a rank that has nothing to which the budget applies if another rank has: each rank
// has GPUs of its own, and the first has the processes of all. If none has, the outcome of the first rank stays. It
// takes and returns the outcomes of each rank.
func Across(ranks [][]Outcome) [][]Outcome {
	found := make(map[string]bool)
	for _, all := range ranks {
		for _, o := range all {
			found[o.Budget.String()] = found[o.Budget.String()] || o.Of != ""
		}
	}
	for i := range ranks {
		ranks[i] = slices.DeleteFunc(ranks[i], func(o Outcome) bool { return o.Of == "" && (i > 0 || found[o.Budget.String()]) })
	}
	return ranks
}

// Check compares a run with budgets. It returns one outcome for each budget and each device, process or role to which
// it applies, in their order. deviceMemory is the limit of a GPU that reports none; 0 if unknown.
func Check(run *snapshot.Run, budgets []Budget, deviceMemory snapshot.Bytes) []Outcome {
	var out []Outcome
	devices := devicesOf(run)
	for _, b := range budgets {
		measured := measure(run, devices, b)
		if len(measured) == 0 {
			out = append(out, Outcome{Budget: b, Unchecked: nothing(run, b.Where)})
		}
		for _, m := range measured {
			out = append(out, m.hold(b, deviceMemory))
		}
	}
	return out
}

// hold compares one measurement with a budget.
func (m *measurement) hold(b Budget, deviceMemory snapshot.Bytes) Outcome {
	o := Outcome{Budget: b, Of: m.of, Several: m.several, Allowed: b.Bytes}
	limit := m.limit
	if limit <= 0 && m.gpu {
		limit = deviceMemory
	}
	if b.Share > 0 {
		o.Allowed = snapshot.Bytes(math.Floor(b.Share * float64(max(limit, 0))))
	}
	var at int
	o.Used, at = m.used(b.Meter)
	if limit > 0 && o.Allowed > limit && o.Used <= o.Allowed {
		o.Limit = limit
	}
	switch {
	case o.Used == snapshot.Unknown && at == tooFew:
		o.Unchecked = "growth of " + m.of + " is not known: it was measured too rarely"
	case o.Used == snapshot.Unknown:
		o.Unchecked = fmt.Sprintf("%s memory of %s was not recorded", b.Meter, m.of)
	case b.Share > 0 && limit <= 0 && m.gpu:
		o.Unchecked = "the limit of " + m.of + " is not known; give --device-memory, or a size"
	case b.Share > 0 && limit <= 0:
		o.Unchecked = "the limit of " + m.of + " is not known; give a size"
	case b.Meter == Peak || b.Meter == Reserved:
		o.At = m.when(at)
	}
	return o
}
