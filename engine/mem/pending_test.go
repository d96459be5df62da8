package mem

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// fakeQueue is a fakeDriver whose device is done with work when a test says so, or
// waited for.
type fakeQueue struct {
	*fakeDriver
	queued, finished uint64
	waited           []uint64
}

func (f *fakeQueue) Queued() uint64   { return f.queued }
func (f *fakeQueue) Finished() uint64 { return f.finished }

func (f *fakeQueue) Finish(ticket uint64) {
	f.waited = append(f.waited, ticket)
	f.finished = max(f.finished, ticket)
}

func states(d *Device) map[snapshot.State]int {
	count := make(map[snapshot.State]int)
	s := Take(snapshot.Mark{}, d)
	for _, state := range s.Blocks.State {
		count[state]++
	}
	return count
}

func TestAFreedBlockWaitsForTheWorkThatMayUseIt(t *testing.T) {
	queue := &fakeQueue{fakeDriver: &fakeDriver{}}
	d := NewDevice(queue, Options{})
	alloc := func(bytes int64) *Storage {
		t.Helper()
		s, err := d.Alloc(bytes, snapshot.OwnedByUser)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := alloc(4096)
	before := first.Buffer()
	queue.queued = 1 // a kernel that reads it
	first.Release(snapshot.OwnedByUser)
	if got := states(d); got[snapshot.Pending] != 1 || got[snapshot.Live] != 0 {
		t.Errorf("blocks by state %v, want one that is pending", got)
	}
	if m := d.Meters(); m.Allocated != 0 || m.Active != 4096 {
		t.Errorf("meters %+v, want nothing allocated and 4 KiB active", m)
	}
	if d.Counters(nil) != nil {
		t.Error("a site still counts a block that was freed")
	}
	second := alloc(4096)
	if second.Buffer() == before {
		t.Error("the block was given out while the device may use it")
	}
	if len(queue.waited) != 0 {
		t.Errorf("waited for %v, though there was room beside", queue.waited)
	}
	queue.finished = 1
	if third := alloc(4096); third.Buffer() != before {
		t.Errorf("work has finished, the block at %d is not used again: %d was", before.Offset, third.Buffer().Offset)
	}
	if got := states(d); got[snapshot.Pending] != 0 {
		t.Errorf("blocks by state %v, want none that is pending", got)
	}
}

func TestNothingIsRefusedWhileBlocksArePending(t *testing.T) {
	for _, c := range []struct {
		name     string
		driver   *fakeDriver
		limit    snapshot.Bytes
		request  int64
		segments int
	}{
		{"a limit waits for a block of its size", &fakeDriver{}, 20 * snapshot.MiB, 12 << 20, 1},
		{"a limit waits, to give a segment back", &fakeDriver{}, 20 * snapshot.MiB, 20 << 20, 1},
		{"a full driver is waited for", &fakeDriver{capacity: 20 << 20}, 0, 14 << 20, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			queue := &fakeQueue{fakeDriver: c.driver}
			d := NewDevice(queue, Options{Limit: c.limit})
			s, err := d.Alloc(12<<20, snapshot.OwnedByUser)
			if err != nil {
				t.Fatal(err)
			}
			queue.queued = 7
			s.Release(snapshot.OwnedByUser)
			if _, err := d.Alloc(c.request, snapshot.OwnedByUser); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(queue.waited, []uint64{7}) || c.driver.segments != c.segments {
				t.Errorf("waited for %v; the driver has given %d segments", queue.waited, c.driver.segments)
			}
		})
	}
}

func TestMuchThatIsPendingIsWaitedForBeforeASegmentIsTaken(t *testing.T) {
	queue := &fakeQueue{fakeDriver: &fakeDriver{}}
	d := NewDevice(queue, Options{})
	for range 100 {
		queue.queued++
		s, err := d.Alloc(10<<20, snapshot.OwnedByUser)
		if err != nil {
			t.Fatal(err)
		}
		s.Release(snapshot.OwnedByUser)
	}
	if m := d.Meters(); m.Reserved > pendingBytes+10<<20 {
		t.Errorf("%s are reserved for one block after the other of 10 MiB", m.Reserved)
	}
}

func TestTrimAndCloseWaitForTheDevice(t *testing.T) {
	for name, end := range map[string]func(*Device) error{
		"trim":  func(d *Device) error { d.Trim(); return nil },
		"close": (*Device).Close,
	} {
		t.Run(name, func(t *testing.T) {
			queue := &fakeQueue{fakeDriver: &fakeDriver{}}
			d := NewDevice(queue, Options{})
			s, err := d.Alloc(1, snapshot.OwnedByUser)
			if err != nil {
				t.Fatal(err)
			}
			queue.queued = 3
			s.Release(snapshot.OwnedByUser)
			if err := end(d); err != nil || queue.segments != 0 || !slices.Equal(queue.waited, []uint64{3}) {
				t.Errorf("%v; %d segments are left, waited for %v", err, queue.segments, queue.waited)
			}
		})
	}
}

// sized is a driver that knows what its device has.
type sized struct{ *fakeDriver }

func (sized) Capacity() snapshot.Bytes { return 8 * snapshot.GiB }

func TestWithoutALimitTheDriversCapacityIsShown(t *testing.T) {
	for _, c := range []struct {
		limit, want snapshot.Bytes
	}{{0, 8 * snapshot.GiB}, {snapshot.GiB, snapshot.GiB}} {
		d := NewDevice(sized{&fakeDriver{}}, Options{Limit: c.limit})
		if got := Take(snapshot.Mark{}, d).Devices[0].Limit; got != c.want {
			t.Errorf("an option of %v shows a limit of %v, want %v", c.limit, got, c.want)
		}
	}
}

func TestALostDeviceNamesWhatItHeld(t *testing.T) {
	d := NewDevice(&fakeDriver{}, Options{})
	s, err := d.Alloc(4096, snapshot.OwnedByUser)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release(snapshot.OwnedByUser)
	other := errors.New("something else")
	if got := d.Explain(other); !errors.Is(got, other) || errors.Is(got, ErrDeviceLost) {
		t.Errorf("%v became %v", other, got)
	}
	if got := d.Explain(nil); got != nil {
		t.Errorf("nothing became %v", got)
	}
	lost := d.Explain(ErrDeviceLost)
	var e *DeviceLostError
	if !errors.As(lost, &e) || !errors.Is(lost, ErrDeviceLost) || len(e.Top) != 1 {
		t.Fatalf("got %#v", lost)
	}
	for _, want := range []string{"the device was lost", "allocated 4.00 KiB", "most is held by"} {
		if !strings.Contains(lost.Error(), want) {
			t.Errorf("%q is not in: %v", want, lost)
		}
	}
}
