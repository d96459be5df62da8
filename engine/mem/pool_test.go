package mem

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
	"pgregory.net/rapid"
)

// fakeDriver hands out sizes without memory, up to a capacity if it has one.
type fakeDriver struct {
	capacity int64
	taken    int64
	segments int
	stuck    bool // does not take memory back
}

type fakeMemory struct{ size int64 }

func (m *fakeMemory) Size() int64 { return m.size }

func (f *fakeDriver) Kind() snapshot.DeviceKind { return snapshot.CUDA }
func (f *fakeDriver) Name() string              { return "fake" }
func (f *fakeDriver) Used() snapshot.Bytes      { return snapshot.Bytes(f.taken) }

var (
	errFull  = errors.New("the fake device is full")
	errStuck = errors.New("the fake device is stuck")
)

func (f *fakeDriver) Allocate(size int64) (Memory, error) {
	if f.capacity > 0 && f.taken+size > f.capacity {
		return nil, errFull
	}
	f.taken += size
	f.segments++
	return &fakeMemory{size}, nil
}

func (f *fakeDriver) Free(m Memory) error {
	if f.stuck {
		return errStuck
	}
	f.taken -= m.Size()
	f.segments--
	return nil
}

// check tells the first law of the pool that does not hold.
func check(d *Device) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := &d.pool
	m := d.meters() // pending blocks whose work has finished are free from here on
	var requested, allocated, pending, reserved int64
	rows := 0
	var free [2][]freeBlock
	sites := make([]siteTotal, len(d.live))
	end := uint64(0)
	for _, at := range p.byAddress() {
		s := &p.segments[at]
		if s.base < end {
			return fmt.Errorf("segment at %#x begins before %#x, where the one before it ends", s.base, end)
		}
		end = s.base + uint64(s.size)
		reserved += s.size
		offset, prev := int64(0), noBlock
		for id := s.first; id != noBlock; id = p.blocks[id].next {
			b := &p.blocks[id]
			rows++
			switch {
			case b.offset != offset:
				return fmt.Errorf("block %d is at %d, the one before it ends at %d", id, b.offset, offset)
			case b.prev != prev || b.segment != at:
				return fmt.Errorf("block %d is not chained to its neighbours", id)
			case b.size <= 0 || b.size%granule != 0:
				return fmt.Errorf("block %d has %d bytes", id, b.size)
			case b.live == (b.owners() == 0):
				return fmt.Errorf("block %d is live: %v, with owners %v", id, b.live, b.owners())
			case b.free() && prev != noBlock && p.blocks[prev].free():
				return fmt.Errorf("blocks %d and %d are free neighbours", prev, id)
			case b.requested > b.size:
				return fmt.Errorf("block %d of %d bytes serves %d", id, b.size, b.requested)
			}
			switch {
			case b.live && b.ticket != 0:
				return fmt.Errorf("block %d is live and pending", id)
			case b.live:
				requested += b.requested
				allocated += b.size
				if b.site != NoSite {
					sites[b.site].add(b.size)
				}
			case b.ticket != 0:
				pending += b.size
				if d.queue.Finished() >= b.ticket {
					return fmt.Errorf("block %d is pending, its work %d has finished", id, b.ticket)
				}
			default:
				free[s.pool] = append(free[s.pool], freeBlock{b.size, p.address(id), id})
			}
			offset, prev = b.offset+b.size, id
		}
		if offset != s.size {
			return fmt.Errorf("blocks cover %d of a segment's %d bytes", offset, s.size)
		}
	}
	for class, want := range free {
		slices.SortFunc(want, freeBlock.compare)
		if got := p.free[class].blocks; !slices.Equal(got, want) {
			return fmt.Errorf("%s free list is %v, the free blocks are %v", snapshot.Pool(class), got, want)
		}
	}
	switch {
	case pending != p.pending || m.Active-m.Allocated != snapshot.Bytes(pending):
		return fmt.Errorf("meters %+v; blocks of %d bytes are pending, the sum is %d", m, pending, p.pending)
	case requested != p.requested || allocated != p.allocated || reserved != p.reserved:
		return fmt.Errorf("meters %+v, the sums are %d, %d, %d", m, requested, allocated, reserved)
	case m.Requested > m.Allocated || m.Allocated > m.Active || m.Active > m.Reserved:
		return fmt.Errorf("meters %+v are out of order", m)
	case d.options.Limit > 0 && m.Reserved > d.options.Limit:
		return fmt.Errorf("%s are reserved, the limit is %s", m.Reserved, d.options.Limit)
	case m.Driver != m.Reserved:
		return fmt.Errorf("%s are reserved, the driver says %s", m.Reserved, m.Driver)
	case !slices.Equal(sites, d.live):
		return fmt.Errorf("counters %v, the sums by site are %v", d.live, sites)
	case rows != len(p.blocks)-len(p.spare):
		return fmt.Errorf("%d rows are chained, %d are in use", rows, len(p.blocks)-len(p.spare))
	}
	return nil
}

// bestFit is the slow clear twin of the free lists: where a request goes, by a
// look at every block. It is false where a segment must be taken.
func bestFit(d *Device, request int64) (m Memory, offset int64, ok bool) {
	size := round(request)
	best := freeBlock{id: noBlock}
	for at, s := range d.pool.segments {
		if s.memory == nil || s.pool != classOf(size) {
			continue
		}
		for id := s.first; id != noBlock; id = d.pool.blocks[id].next {
			b := d.pool.blocks[id]
			this := freeBlock{b.size, s.base + uint64(b.offset), id}
			if b.free() && b.size >= size && (best.id == noBlock || this.compare(best) < 0) {
				best, m, offset = this, d.pool.segments[at].memory, b.offset
			}
		}
	}
	return m, offset, best.id != noBlock
}

func sizes() *rapid.Generator[int64] {
	return rapid.OneOf(
		rapid.Int64Range(0, 8<<10),
		rapid.Int64Range(0, smallLimit+granule),
		rapid.Int64Range(smallLimit, hugeLimit+granule),
		rapid.Int64Range(hugeLimit, 3*hugeLimit),
		rapid.SampledFrom([]int64{0, 1, 511, 512, 513, smallLimit, smallLimit + 1, hugeLimit - 1, hugeLimit, 2 * hugeLimit}),
	)
}

// held is the model of a storage: how many references each class has.
type held struct {
	*Storage
	refs [owners]int
}

func TestLawsOfThePoolHoldAfterAnyTrace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		driver := &fakeDriver{}
		queue := &fakeQueue{fakeDriver: driver}
		var given Driver = driver
		if rapid.Bool().Draw(t, "queued") {
			given = queue
		}
		limit := snapshot.Bytes(rapid.SampledFrom([]int64{0, 48 << 20, 200 << 20}).Draw(t, "limit"))
		d := NewDevice(given, Options{Limit: limit})
		var live []*held
		pick := func() (int, *held) {
			if len(live) == 0 {
				t.Skip("nothing is live")
			}
			i := rapid.IntRange(0, len(live)-1).Draw(t, "storage")
			return i, live[i]
		}
		class := func() int { return rapid.IntRange(0, owners-1).Draw(t, "class") }
		heldClass := func(h *held) int {
			return rapid.SampledFrom(h.classes()).Draw(t, "held class")
		}
		t.Repeat(map[string]func(*rapid.T){
			"alloc": func(t *rapid.T) {
				request, c := sizes().Draw(t, "bytes"), class()
				d.Meters() // takes back what is pending no longer
				m, offset, fits := bestFit(d, request)
				s, err := d.Alloc(request, 1<<c)
				var oom *OutOfMemoryError
				if errors.As(err, &oom) {
					if fits || limit == 0 {
						t.Fatalf("there is room, but: %v", err)
					}
					if d.Trim() != 0 {
						t.Fatal("refused while free segments were kept")
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				b := s.Buffer()
				if fits && (b.Memory != m || b.Offset != offset) {
					t.Fatalf("%d bytes went to %d, the best fit is at %d", request, b.Offset, offset)
				}
				if b.Size < request || s.Requested() != request {
					t.Fatalf("%d bytes were asked for, got %+v", request, b)
				}
				h := &held{Storage: s}
				h.refs[c] = 1
				live = append(live, h)
			},
			"retain": func(t *rapid.T) {
				_, h := pick()
				c := class()
				h.Retain(1 << c)
				h.refs[c]++
			},
			"move": func(t *rapid.T) {
				_, h := pick()
				from, to := heldClass(h), class()
				h.Move(1<<from, 1<<to)
				h.refs[from]--
				h.refs[to]++
			},
			"release": func(t *rapid.T) {
				i, h := pick()
				c := heldClass(h)
				h.Release(1 << c)
				h.refs[c]--
				if len(h.classes()) == 0 {
					live = slices.Delete(live, i, i+1)
					if h.Alive() {
						t.Fatal("alive after the last release")
					}
				}
			},
			"work is queued": func(*rapid.T) { queue.queued++ },
			"work finishes":  func(*rapid.T) { queue.finished = min(queue.finished+1, queue.queued) },
			"trim": func(t *rapid.T) {
				before := driver.taken
				if got := d.Trim(); int64(got) != before-driver.taken {
					t.Fatalf("Trim said %d, the driver got %d", got, before-driver.taken)
				}
			},
			"": func(t *rapid.T) {
				if err := check(d); err != nil {
					t.Fatal(err)
				}
				var requested int64
				for _, h := range live {
					requested += h.Requested()
					if !h.Alive() || h.Owners() != h.set() {
						t.Fatalf("alive %v, owners %v, want %v", h.Alive(), h.Owners(), h.set())
					}
				}
				if got := d.Meters().Requested; int64(got) != requested {
					t.Fatalf("%d bytes requested, the model has %d", got, requested)
				}
			},
		})
		for _, h := range live {
			for c, n := range h.refs {
				for range n {
					h.Release(1 << c)
				}
			}
		}
		if err := d.Close(); err != nil || driver.taken != 0 || driver.segments != 0 {
			t.Fatalf("closed with %v; %d bytes stay with the driver", err, driver.taken)
		}
	})
}

func (h *held) classes() []int {
	var held []int
	for c, n := range h.refs {
		if n > 0 {
			held = append(held, c)
		}
	}
	return held
}

func (h *held) set() snapshot.Owners {
	var o snapshot.Owners
	for _, c := range h.classes() {
		o |= 1 << c
	}
	return o
}

func TestSizesFollowPyTorch(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name                     string
		request, block, reserved int64
	}{
		{"no bytes are a block all the same", 0, 512, 2 * mib},
		{"one byte is a granule", 1, 512, 2 * mib},
		{"a granule is not rounded", 512, 512, 2 * mib},
		{"a byte more takes the next granule", 513, 1024, 2 * mib},
		{"1 MiB is the largest small block", mib, mib, 2 * mib},
		{"a byte more is large", mib + 1, mib + 512, 20 * mib},
		{"the last to share a segment", 10*mib - 512, 10*mib - 512, 20 * mib},
		{"from 10 MiB on the segment is the request's own", 10 * mib, 10 * mib, 10 * mib},
		{"a rest up to 1 MiB is not split off", 11 * mib, 12 * mib, 12 * mib},
		{"a rest of more than 1 MiB is", 10*mib + 512, 10*mib + 512, 12 * mib},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := NewDevice(&fakeDriver{}, Options{})
			s, err := d.Alloc(c.request, snapshot.OwnedByUser)
			if err != nil {
				t.Fatal(err)
			}
			m := d.Meters()
			if s.Buffer().Size != c.block || int64(m.Allocated) != c.block || int64(m.Reserved) != c.reserved || int64(m.Requested) != c.request {
				t.Errorf("got a block of %d in %+v, want %d in %d", s.Buffer().Size, m, c.block, c.reserved)
			}
		})
	}
}

func TestAllocatingFromManyGoroutinesKeepsTheLaws(t *testing.T) {
	d := NewDevice(&fakeDriver{}, Options{Limit: 512 * snapshot.MiB})
	var workers sync.WaitGroup
	for w := range 8 {
		workers.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(w)))
			var live []*Storage
			for range 600 {
				switch {
				case len(live) < 8 || random.IntN(2) == 0:
					s, err := d.Alloc(random.Int64N(4<<20)>>random.IntN(12), snapshot.OwnedByUser)
					if err != nil {
						t.Error(err)
						return
					}
					live = append(live, s)
				default:
					i := random.IntN(len(live))
					live[i].Retain(snapshot.OwnedByTape)
					live[i].Release(snapshot.OwnedByUser)
					live[i].Move(snapshot.OwnedByTape, snapshot.OwnedByGrad)
					live[i].Release(snapshot.OwnedByGrad)
					live = slices.Delete(live, i, i+1)
				}
				for len(live) > 12 {
					live[0].Release(snapshot.OwnedByUser)
					live = live[1:]
				}
			}
			for _, s := range live {
				s.Release(snapshot.OwnedByUser)
			}
		})
	}
	stop := make(chan bool)
	var watcher sync.WaitGroup
	watcher.Go(func() {
		series := NewSeries(d)
		for step := int64(0); ; step++ {
			select {
			case <-stop:
				return
			default:
			}
			mark := snapshot.Mark{Step: step}
			d.SetMark(mark)
			series.Append(mark)
			Take(mark, d)
			d.Trim()
			d.SetParent(d.Site())
			if err := check(d); err != nil {
				t.Error(err)
				return
			}
		}
	})
	workers.Wait()
	close(stop)
	watcher.Wait()
	if err := check(d); err != nil {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

func TestASegmentForOneBlockIsTakenWhereALargerOneHasNoRoom(t *testing.T) {
	for _, c := range []struct {
		name   string
		device *Device
	}{
		{"under a limit", NewDevice(&fakeDriver{}, Options{Limit: 38 << 20})},
		{"of a full device", NewDevice(&fakeDriver{capacity: 38 << 20}, Options{})},
	} {
		t.Run(c.name, func(t *testing.T) {
			var err error
			n := 0
			for ; err == nil && n < 20; n++ {
				_, err = c.device.Alloc(5<<20, snapshot.OwnedByUser)
			}
			// Four in 20 MiB, and three in 6 MiB each.
			var oom *OutOfMemoryError
			if n != 8 || !errors.As(err, &oom) || oom.Segment != 6<<20 || oom.Meters.Reserved != 38<<20 {
				t.Errorf("block %d: %v", n, err)
			}
			if err := check(c.device); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestADriverThatIsFullIsTrimmedForBeforeItRefuses(t *testing.T) {
	driver := &fakeDriver{capacity: 25 << 20}
	d := NewDevice(driver, Options{})
	small, err := d.Alloc(100, snapshot.OwnedByUser)
	if err != nil {
		t.Fatal(err)
	}
	large, err := d.Alloc(20<<20, snapshot.OwnedByUser)
	if err != nil {
		t.Fatal(err)
	}
	large.Release(snapshot.OwnedByUser)
	if _, err := d.Alloc(22<<20, snapshot.OwnedByUser); err != nil {
		t.Errorf("after a trim there is room, but: %v", err)
	}
	_, err = d.Alloc(22<<20, snapshot.OwnedByUser)
	var oom *OutOfMemoryError
	if !errors.As(err, &oom) || !errors.Is(err, errFull) || oom.Limit != snapshot.Unknown {
		t.Errorf("got %v, want an OutOfMemoryError that wraps the driver's", err)
	}
	small.Release(snapshot.OwnedByUser)
	driver.stuck = true
	if d.Trim() != 2<<20 {
		t.Error("the small segment was not trimmed")
	}
	if err := d.Close(); !errors.Is(err, errStuck) {
		t.Errorf("Close said %v, not that a trim before it failed", err)
	}
}
