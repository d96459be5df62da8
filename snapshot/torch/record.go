package torch

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
)

// record replays the allocator's events as they pass: of them only the
// tenancies that are still open are kept.
type record struct {
	devices     int // lists of events, also empty ones
	events      int64
	sources     int // lists of events that have any
	lostFrees   int64
	first, last int64        // times of events in Unix microseconds; 0 for none
	live        []*tenancies // by device
	only        bool         // the segments came first, and no more may come
	host        *tenancies   // of pinned memory
	ooms        map[int]oom
	ends        map[string][]int64 // times at which an annotation ended, by name
	profiled    []int64            // … of torch.profiler's steps
	times       int64              // of both, how many
	spent       int64              // bytes that this takes at most
	stamped     struct {           // the step in the metadata that was read last
		id   uint32
		step int64
		ok   bool
	}
}

// oom is a device's last out-of-memory failure, and how many there were.
type oom struct {
	count, time     int64
	requested, free uint64
	stack           uint32
}

func (o oom) of(device int, table *stackTable) *snapshot.Refused {
	return &snapshot.Refused{Device: device, Bytes: snapshot.Bytes(min(o.requested, maxBytes)), Free: snapshot.Bytes(min(o.free, maxBytes)), Stack: table.stack(o.stack), Times: o.count}
}

// refused is the request of all devices that failed last; nil for none.
func (r *record) refused(table *stackTable) *snapshot.Refused {
	device := r.lastRefused()
	if device < 0 {
		return nil
	}
	return r.ooms[device].of(device, table)
}

// lastRefused is the device of that request; -1 for none.
func (r *record) lastRefused() int {
	last := -1
	for _, device := range slices.Sorted(maps.Keys(r.ooms)) {
		if last < 0 || r.ooms[device].time > r.ooms[last].time {
			last = device
		}
	}
	return last
}

func (r *record) init() {
	r.host = newTenancies()
	r.ooms = make(map[int]oom)
	r.ends = make(map[string][]int64)
}

// addDeviceEvent adds an event of a GPU's trace.
func (b *builder) addDeviceEvent(device int, o *object) error {
	r := &b.record
	if device > maxDevice {
		return b.m.fail("device %d is out of range", device)
	}
	if r.events >= fewEvents && !r.only && b.begun[segments] {
		b.expect()
	}
	if o.has(enAction) && keyword(o.values[enAction]) == kwOOM {
		r.ooms[device] = oom{r.ooms[device].count + 1, int64(o.values[enTime]), o.values[enSize], o.values[enFree], uint32(o.values[enStack])}
	}
	live := r.of(device)
	if id := uint32(o.values[enMetadata]); o.has(enMetadata) && id != kwEmpty {
		if step, ok := r.stamp(id, b.m.symbols.strings); ok {
			live.step = step // other threads, as autograd's, stamp nothing
		}
	}
	r.add(live, o)
	if b.moments.at.Kind != snapshot.AtEnd {
		b.follow(device, o)
	}
	if b.lives != nil {
		l := b.lives[device]
		if l == nil {
			l = newLives()
			b.lives[device] = l
		}
		l.add(max(int64(o.values[enTime]), 0), o)
	}
	if b.events != nil {
		b.keepEvent(device, o)
	}
	return nil
}

// add replays one event.
func (r *record) add(live *tenancies, o *object) {
	r.events++
	if !live.any {
		live.any = true
		r.sources++
	}
	t := int64(o.values[enTime])
	if t > 0 {
		if r.first == 0 || t < r.first {
			r.first = t
		}
		r.last = max(r.last, t)
	} else {
		t = -r.events
	}
	if !o.has(enAction) {
		return
	}
	address := uint64(noAddress)
	if o.has(enAddr) {
		address = o.values[enAddr]
	}
	switch keyword(o.values[enAction]) {
	case kwAlloc:
		if address != noAddress {
			live.open(address, tenancy{t, o.values[enSize], live.step})
		}
	case kwFreeCompleted:
		if address == noAddress || !live.close(address) {
			r.lostFrees++
		}
	}
}

// stampPrefix begins what memdiag's recorder has PyTorch write on each allocation: the step.
const stampPrefix = `{"memdiag_step":`

// stamp is the step in the metadata of an event, if memdiag stamped it.
func (r *record) stamp(id uint32, strings_ []string) (int64, bool) {
	if id != r.stamped.id {
		number, ok := strings.CutPrefix(strings_[id], stampPrefix)
		number, closed := strings.CutSuffix(number, "}")
		step, err := strconv.ParseInt(number, 10, 64)
		r.stamped.id, r.stamped.step, r.stamped.ok = id, step, ok && closed && err == nil && step >= 0
	}
	return r.stamped.step, r.stamped.ok
}

// eventsBetween is how often the tables of tenancies are weighed.
const eventsBetween = 1 << 14

// The memory of an optimizer's name, and of the time of a step, in bytes, including the garbage of growing.
const (
	nameCost = 200
	timeCost = 24
)

// weigh sums up what the tenancies, moments and names take, in bytes.
func (b *builder) weigh() {
	r := &b.record
	r.spent = r.host.bytes() + nameCost*int64(len(r.ends)) + timeCost*r.times
	for _, t := range r.live {
		r.spent += t.bytes()
	}
	for _, m := range b.moments.of {
		r.spent += m.bytes()
	}
	for _, l := range b.lives {
		r.spent += l.bytes()
	}
	for _, e := range b.events {
		r.spent += eventCost * int64(cap(e.Events))
	}
}

// fewEvents is a number of events that need no preselection. PyTorch writes one event if it records the state only.
const fewEvents = 256

// expect gives the record the addresses whose births matter, if the segments come before the trace: those of active blocks.
func (b *builder) expect() {
	r := &b.record
	r.only = true
	for i := range b.segments {
		seg := &b.segments[i]
		if seg.Device < 0 {
			continue // events are of GPUs
		}
		live := r.of(seg.Device)
		for row := seg.FirstBlock; row < seg.end; row++ {
			if at := b.blocks.Address[row]; b.blocks.State[row] != snapshot.Free && at != noAddress {
				live.matters(at)
			}
		}
	}
	for _, live := range r.live {
		live.only = true
	}
}

// of returns a device's tenancies.
func (r *record) of(device int) *tenancies {
	if device < len(r.live) {
		return r.live[device]
	}
	for device >= len(r.live) {
		r.live = append(r.live, newTenancies())
		r.live[len(r.live)-1].only = r.only
	}
	return r.live[device]
}

// annotate notes the end of a step.
func (r *record) annotate(o *object, strings_ []string) {
	t := int64(o.values[anTime])
	if !o.has(anName) || !o.has(anStage) || keyword(o.values[anStage]) != kwEnd || t <= 0 {
		return
	}
	name := strings_[o.values[anName]]
	switch {
	case strings.HasPrefix(name, "Optimizer.step#"):
		if _, ok := r.ends[name]; !ok {
			r.spent += nameCost
		}
		r.ends[name] = append(r.ends[name], t)
	case strings.HasPrefix(name, "ProfilerStep#"):
		r.profiled = append(r.profiled, t)
	default:
		return
	}
	r.times++
	r.spent += timeCost
}

// stepEnds returns when steps ended, in order. torch.optim annotates every optimizer's step. If there are several optimizers, the one
// with the most steps counts (the first by name among equals), so that a discriminator and a generator make one step. Without any,
// torch.profiler's steps count.
func (r *record) stepEnds() []int64 {
	var name string
	for n, ends := range r.ends {
		if d := len(ends) - len(r.ends[name]); d > 0 || d == 0 && (name == "" || n < name) {
			name = n
		}
	}
	ends := r.ends[name]
	if len(ends) == 0 {
		ends = r.profiled
	}
	slices.Sort(ends)
	return ends
}

// left counts the tenancies that the events leave open.
func (r *record) left() int {
	n := r.host.count
	for _, t := range r.live {
		n += t.count
	}
	return n
}

// at returns the tenancy that is open at an address of a device; -1 is the host.
func (r *record) at(device int, address uint64) (tenancy, bool) {
	if device < 0 {
		return r.host.at(address)
	}
	if device >= len(r.live) {
		return tenancy{}, false
	}
	return r.live[device].at(address)
}

// brokenRules counts what does not hold that holds in every real file
// (Schema of PyTorch's snapshots, docs).
type brokenRules struct {
	total, allocated, active, requested int // segments
	gaps, overlaps, shared              int // … by the addresses of blocks, and by their own
	replayed                            int // blocks that the record says are live
	sizes                               int // … and of another size
	requests                            int // that are larger than what was given for them
}

func (k *brokenRules) check(seg *rawSegment, total, allocated, active, requested int64) {
	count := func(to *int, broken bool) {
		if broken {
			*to++
		}
	}
	count(&k.total, seg.Size != snapshot.Bytes(total))
	count(&k.allocated, seg.allocated >= 0 && seg.allocated != allocated)
	count(&k.active, seg.active >= 0 && seg.active != active)
	count(&k.requested, seg.request >= 0 && seg.request != requested)
}
