package mem

import (
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/memdiag/memdiag/snapshot"
)

// Options say how a device allocates.
type Options struct {
	// Limit caps the memory taken from the driver; 0 for none.
	Limit snapshot.Bytes
	// Index tells devices of one kind apart.
	Index int
	// Untracked leaves out stacks and site counters, so that the cost of
	// recording can be measured against a run without it.
	Untracked bool
}

// Device is a caching allocator over one driver. What is released stays in its
// segments for the next request until Trim. All methods are safe for concurrent
// use.
type Device struct {
	driver  Driver
	queue   Queued // the driver, if its device lags behind the program; else nil
	options Options
	sites   siteTable
	parent  atomic.Uint32 // a SiteID
	closed  atomic.Bool

	mu        sync.Mutex
	pool      pool
	live      []siteTotal // by SiteID; NoSite's are not counted
	lost      []siteTotal // by SiteID
	step      int64
	synthetic uint64 // where the next segment of a driver without addresses begins
	faults    []error
}

// siteTotal is what one site holds.
type siteTotal struct {
	count int64
	bytes snapshot.Bytes
}

// syntheticSpace is the room for the made-up addresses of one device.
const syntheticSpace = 1 << 44

// NewDevice returns a device that holds nothing yet.
func NewDevice(d Driver, o Options) *Device {
	queue, _ := d.(Queued)
	return &Device{driver: d, queue: queue, options: o, synthetic: uint64(o.Index+1) * syntheticSpace}
}

// Alloc makes a block of at least the given bytes live, with one reference of
// the one owner class given. The contents are undefined. Zero bytes get a block
// of the smallest size. Where the driver or the limit has no room even after a
// Trim, the error is an *OutOfMemoryError; a size that no device could have is
// an error of its own.
func (d *Device) Alloc(bytes int64, owner snapshot.Owners) (*Storage, error) {
	class, err := classIndex(owner)
	if err != nil {
		return nil, err
	}
	if bytes < 0 || bytes > maxRequest {
		return nil, fmt.Errorf("%s: %d bytes were asked for; a block has 0 to 2^46", d, bytes)
	}
	at := d.here()

	d.mu.Lock()
	if d.closed.Load() {
		d.mu.Unlock()
		return nil, fmt.Errorf("%s: %s were asked for after the device was closed", d, snapshot.Bytes(bytes))
	}
	id, refused := d.take(bytes, at)
	if id == noBlock {
		defer d.mu.Unlock()
		if errors.Is(refused, ErrDeviceLost) {
			return nil, d.deviceLost(refused)
		}
		return nil, d.outOfMemory(bytes, refused)
	}
	b := &d.pool.blocks[id]
	b.site, b.birth = at, d.step
	b.refs[class] = 1
	if at != NoSite {
		d.live = grown(d.live, at)
		d.live[at].add(b.size)
	}
	seg := &d.pool.segments[b.segment]
	s := &Storage{
		device:    d,
		buffer:    Buffer{Memory: seg.memory, Offset: b.offset, Size: b.size},
		requested: bytes,
		block:     id,
		site:      at,
	}
	d.mu.Unlock()
	return s, nil
}

// inUse is the ticket after which a block that is freed now can be used again; 0 if
// that is at once.
func (d *Device) inUse() uint64 {
	if d.queue == nil {
		return 0
	}
	if t := d.queue.Queued(); t > d.queue.Finished() {
		return t
	}
	return 0
}

// reclaim frees the pending blocks that the device is done with.
func (d *Device) reclaim() {
	if d.queue != nil {
		d.pool.reclaim(d.queue.Finished())
	}
}

// finish waits until no block is pending.
func (d *Device) finish() {
	if n := len(d.pool.waiting); n > 0 {
		d.queue.Finish(d.pool.blocks[d.pool.waiting[n-1]].ticket)
		d.reclaim()
	}
}

// While less than this is pending, and less than a part of what is reserved, a
// request gets a new segment sooner than it waits for the device: what a device that
// is kept busy costs in memory.
const (
	pendingBytes = 64 << 20
	pendingPart  = 4
)

// take finds room for a request: in what is free, by waiting for what is pending
// where that is much, in a new segment, by a Trim, and at last in a segment that
// has room for nothing else, where PyTorch gives up with most of a small limit
// unused. The error is the driver's, nil where it was the limit.
func (d *Device) take(request int64, at SiteID) (blockID, error) {
	size := round(request)
	d.reclaim()
	if id := d.pool.take(request, size); id != noBlock {
		return id, nil
	}
	if d.pool.pending > max(pendingBytes, d.pool.reserved/pendingPart) {
		d.finish()
		if id := d.pool.take(request, size); id != noBlock {
			return id, nil
		}
	}
	want := segmentFor(size)
	ok, refused := d.addSegment(size, want, at)
	if !ok {
		d.finish()
		if id := d.pool.take(request, size); id != noBlock {
			return id, nil
		}
		if d.trim() > 0 {
			ok, refused = d.addSegment(size, want, at)
		}
		if least := leastSegmentFor(size); !ok && least < want {
			ok, refused = d.addSegment(size, least, at)
		}
		if !ok {
			return noBlock, refused
		}
	}
	return d.pool.take(request, size), nil
}

// addSegment takes a segment of want bytes for a block of size bytes.
func (d *Device) addSegment(size, want int64, at SiteID) (ok bool, refused error) {
	if d.options.Limit > 0 && d.pool.reserved+want > int64(d.options.Limit) {
		return false, nil
	}
	m, err := d.driver.Allocate(want)
	if err != nil {
		return false, err
	}
	var base uint64
	if a, ok := m.(interface{ Address() uint64 }); ok {
		base = a.Address()
	} else {
		base = d.synthetic
		d.synthetic += uint64((m.Size() + hugeRounding - 1) / hugeRounding * hugeRounding)
	}
	d.pool.addSegment(m, base, classOf(size), at)
	return true, nil
}

// Trim waits for pending blocks, gives every segment that is wholly free back to
// the driver, and returns their bytes. Contents of free memory do not outlive it.
func (d *Device) Trim() snapshot.Bytes {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.trim()
}

func (d *Device) trim() snapshot.Bytes {
	d.finish()
	before := d.pool.reserved
	for _, m := range d.pool.trim() {
		d.free(m)
	}
	return snapshot.Bytes(before - d.pool.reserved)
}

// free keeps the driver's error for Close: nobody who trims can act on it.
func (d *Device) free(m Memory) {
	if err := d.driver.Free(m); err != nil {
		d.faults = append(d.faults, fmt.Errorf("%s: a segment of %s could not be given back: %w", d, snapshot.Bytes(m.Size()), err))
	}
}

// Close gives all memory back. It is an error if blocks are still live, and the
// error names the sites that hold most; these blocks are gone all the same, and
// releasing them later does nothing. Errors of the driver in freeing segments,
// now or in an earlier Trim, are reported too. A second Close does nothing.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed.Load() {
		return nil
	}
	d.finish()
	var wrong []error
	if n := d.pool.liveBlocks(); n > 0 {
		wrong = append(wrong, &LiveError{Device: d.String(), Blocks: n, Bytes: snapshot.Bytes(d.pool.allocated), Top: d.topSites()})
	}
	for _, s := range d.pool.segments {
		if s.memory != nil {
			d.free(s.memory)
		}
	}
	d.pool, d.live = pool{}, nil
	d.closed.Store(true)
	return errors.Join(append(wrong, d.faults...)...)
}

// Meters are the allocator's figures now, and the driver's beside them.
func (d *Device) Meters() snapshot.Meters {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.meters()
}

func (d *Device) meters() snapshot.Meters {
	d.reclaim()
	return snapshot.Meters{
		Requested: snapshot.Bytes(d.pool.requested),
		Allocated: snapshot.Bytes(d.pool.allocated),
		Active:    snapshot.Bytes(d.pool.allocated + d.pool.pending),
		Reserved:  snapshot.Bytes(d.pool.reserved),
		Driver:    d.driver.Used(),
	}
}

// SetMark says that the program stands at a barrier: blocks allocated from now
// on are born at m.Step. Until the first mark they are born at step 0.
func (d *Device) SetMark(m snapshot.Mark) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.step = m.Step
}

// Site interns the caller's stack, as Alloc does for the block it makes. A
// parent that is set is no part of it, so chains of parents have two links at
// most. It is NoSite on an untracked device.
func (d *Device) Site() SiteID {
	if d.options.Untracked {
		return NoSite
	}
	return d.sites.capture(NoSite)
}

// SetParent makes blocks that are allocated from now on, by any goroutine, carry
// the site's stack after their own, with a frame "backward of" between them; it
// returns the site that was set before. NoSite ends it.
func (d *Device) SetParent(s SiteID) (old SiteID) {
	return SiteID(d.parent.Swap(uint32(s)))
}

// here is the site of an allocation that is under way.
func (d *Device) here() SiteID {
	if d.options.Untracked {
		return NoSite
	}
	return d.sites.capture(SiteID(d.parent.Load()))
}

// Stack returns the site's symbolised frames, innermost first, those of its
// parent after them; nil for NoSite. The first call for a site takes microseconds.
func (d *Device) Stack(s SiteID) []snapshot.Frame { return d.sites.stack(s) }

// SiteTotal is what one site holds.
type SiteTotal struct {
	Site  SiteID
	Count int64
	Bytes snapshot.Bytes // allocated
}

// Counters appends what every site holds to dst, ascending by site, and returns
// it. Sites that hold nothing, and blocks without a stack, are left out. It only
// copies: no stack is symbolised.
func (d *Device) Counters(dst []SiteTotal) []SiteTotal {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, t := range d.live {
		if t.count > 0 {
			dst = append(dst, SiteTotal{SiteID(i), t.count, t.bytes})
		}
	}
	return dst
}

// seen is the first SiteID that nothing has been allocated at.
func (d *Device) seen() SiteID {
	d.mu.Lock()
	defer d.mu.Unlock()
	return SiteID(len(d.live))
}

// String is the device's kind and index: "cpu 0".
func (d *Device) String() string { return fmt.Sprintf("%s %d", d.driver.Kind(), d.options.Index) }

func (t *siteTotal) add(size int64) {
	t.count++
	t.bytes += snapshot.Bytes(size)
}

func (t *siteTotal) subtract(size int64) {
	t.count--
	t.bytes -= snapshot.Bytes(size)
}

// grown returns totals with a row for the site.
func grown(totals []siteTotal, s SiteID) []siteTotal {
	for len(totals) <= int(s) {
		totals = append(totals, siteTotal{})
	}
	return totals
}

// OneClass is an error unless the owners are one class, as every reference has it.
func OneClass(o snapshot.Owners) error {
	_, err := classIndex(o)
	return err
}

// classIndex is the position of the one owner class in the set.
func classIndex(o snapshot.Owners) (int, error) {
	if bits.OnesCount8(uint8(o)) != 1 || o >= 1<<owners {
		return 0, fmt.Errorf("owners %#b are not one class; name the one that holds the reference", uint8(o))
	}
	return bits.TrailingZeros8(uint8(o)), nil
}
