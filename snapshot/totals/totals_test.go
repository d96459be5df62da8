package totals

import (
	"math"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/bounded"
)

// begin is a builder that reads from a file of so many bytes, read to its end.
func begin(t *testing.T, size int) *Builder {
	t.Helper()
	in, err := bounded.Open("f", strings.NewReader(strings.Repeat("x", size)), int64(size), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(in.Close)
	if err := in.Skip(uint64(size)); err != nil {
		t.Fatal(err)
	}
	return New(in, Options{})
}

func (b *Builder) stackOf(t *testing.T, names ...string) snapshot.StackID {
	t.Helper()
	var ids []snapshot.FrameID
	for _, n := range names {
		id, err := b.Frame(snapshot.Frame{Function: n, File: "a.c", Line: 1})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	id, err := b.Stack(ids)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (b *Builder) device(t *testing.T, index int) int {
	t.Helper()
	d, err := b.Device(snapshot.CPU, index, "")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestTotalsOfOneStackAddUp(t *testing.T) {
	b := begin(t, 10)
	one, zero := b.device(t, 1), b.device(t, 0)
	f, g := b.stackOf(t, "f", "main"), b.stackOf(t, "g", "main")
	for _, add := range []struct {
		device       int
		stack        snapshot.StackID
		count, bytes int64
	}{
		{zero, f, 2, 20}, {one, f, 1, 5}, {zero, f, 3, 30}, {zero, g, 0, 0}, {zero, snapshot.NoStack, 0, 7},
	} {
		if err := b.Add(add.device, add.stack, add.count, add.bytes); err != nil {
			t.Fatal(err)
		}
	}
	s := b.Snapshot("test", "a note")
	want := []snapshot.Site{{Count: 5, Bytes: 50, Stack: f}, {Count: 1, Bytes: 7}, {Count: 1, Bytes: 5, Stack: f}}
	sites := s.Sites()
	if len(sites) != len(want) {
		t.Fatalf("%d sites, want %d: a stack that holds nothing is no site", len(sites), len(want))
	}
	for i, w := range want {
		if got := sites[i]; got.Count != w.Count || got.Bytes != w.Bytes || got.Stack != w.Stack || got.Requested != w.Bytes {
			t.Errorf("site %d is %+v, want %+v", i, got, w)
		}
	}
	if m := s.Devices[zero].Meters; m.Allocated != 57 || m.Reserved != 57 || m.Driver != snapshot.Unknown {
		t.Errorf("meters of the device with 57 bytes: %+v", m)
	}
	if len(s.Notes) != 1 || s.Mark.Step != snapshot.NoStep || s.Rank != snapshot.NoRank {
		t.Errorf("notes %q, step %d, rank %d", s.Notes, s.Mark.Step, s.Rank)
	}
}

func TestWhatNoProfileHoldsIsAnError(t *testing.T) {
	for _, c := range []struct {
		name                       string
		count, bytes, count2, more int64
		want                       string
	}{
		{"fewer bytes than none", 1, -1, 0, 0, "this is a difference of profiles, not a profile"},
		{"fewer blocks than none", -1, 1, 0, 0, "this is a difference of profiles, not a profile"},
		{"bytes beyond all memory", 1, math.MaxInt64/2 - 1, 1, 2, "more than 2^62"},
		{"blocks beyond all memory", math.MaxInt64/2 - 1, 1, 2, 1, "more than 2^62"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := begin(t, 10)
			d := b.device(t, 0)
			err := b.Add(d, b.stackOf(t, "f"), c.count, c.bytes)
			if err == nil {
				err = b.Add(d, b.stackOf(t, "g"), c.count2, c.more)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestStacksOfRunawayRecursionAreCut(t *testing.T) {
	b := begin(t, 10)
	f := b.stackOf(t, "f")
	frame := b.stacks.FrameIDs(f)[0]
	deep := make([]snapshot.FrameID, MaxDepth+5)
	for i := range deep {
		deep[i] = frame
	}
	id, err := b.Stack(deep)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(b.stacks.FrameIDs(id)); n != MaxDepth {
		t.Errorf("%d frames, want %d", n, MaxDepth)
	}
	if notes := b.Snapshot("test").Notes; len(notes) != 1 || !strings.HasPrefix(notes[0], "1 stack is deeper than 16384") {
		t.Errorf("notes %q", notes)
	}
}

// A small file that repeats a deep stack, or varies it, costs neither time nor
// memory without end.
func TestDeepStacksOfASmallFileEnd(t *testing.T) {
	for name, distinct := range map[string]bool{"one stack again and again": false, "a new one each time": true} {
		t.Run(name, func(t *testing.T) {
			b := begin(t, 1000)
			frame := b.stacks.FrameIDs(b.stackOf(t, "f"))[0]
			deep := make([]snapshot.FrameID, 10_000)
			for i := range deep {
				deep[i] = frame
			}
			for i := range 10_000 {
				if distinct {
					var err error
					if deep[0], err = b.Frame(snapshot.Frame{Function: "g", Line: i}); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := b.Stack(deep); err != nil {
					return
				}
			}
			t.Error("100 million frames out of 1000 bytes")
		})
	}
}

func TestDevicesAreBounded(t *testing.T) {
	b := begin(t, 10)
	for i := range 5000 {
		if _, err := b.Device(snapshot.CPU, i, ""); err != nil {
			return
		}
	}
	t.Error("5000 devices")
}

// A small file must not fill memory, whichever table its elements go to.
func TestWhatIsKeptIsCharged(t *testing.T) {
	for name, keep := range map[string]func(b *Builder, i int) error{
		"frames": func(b *Builder, i int) error {
			_, err := b.Frame(snapshot.Frame{Function: "f", Line: i})
			return err
		},
		"stacks": func(b *Builder, i int) error {
			frames := make([]snapshot.FrameID, 60)
			for bit := range 20 {
				frames[bit] = snapshot.FrameID(i >> bit & 1)
			}
			_, err := b.Stack(frames)
			return err
		},
		"rows": func(b *Builder, i int) error { return b.Add(0, snapshot.StackID(i), 1, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			b := begin(t, 0)
			b.device(t, 0)
			b.stackOf(t, "f", "g") // two frames
			for i := range 300_000 {
				if err := keep(b, i); err != nil {
					return
				}
			}
			t.Error("300,000 are not too many for an empty file")
		})
	}
}
