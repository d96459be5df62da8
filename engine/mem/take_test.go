package mem_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/snapshot"
)

// bare is a driver of memory without addresses or contents.
type bare struct{}

type bareMemory int64

func (m bareMemory) Size() int64 { return int64(m) }

func (bare) Kind() snapshot.DeviceKind               { return snapshot.Vulkan }
func (bare) Name() string                            { return "bare" }
func (bare) Allocate(size int64) (mem.Memory, error) { return bareMemory(size), nil }
func (bare) Free(mem.Memory) error                   { return nil }
func (bare) Used() snapshot.Bytes                    { return snapshot.Unknown }

func TestASnapshotHoldsEveryBlockOfEveryDevice(t *testing.T) {
	host, other := newDevice(t, mem.Options{Limit: snapshot.GiB}), mem.NewDevice(bare{}, mem.Options{Index: 1})
	a := alloc(t, host, 100)
	host.SetMark(snapshot.Mark{Step: 7})
	b := alloc(t, host, 3<<20)
	b.Retain(tape)
	alloc(t, other, 1000)
	alloc(t, other, 2000).Release(user)
	mark := snapshot.Mark{Step: 8, Epoch: 1, Phase: "train"}
	s := mem.Take(mark, host, other)

	if s.Mark != mark || s.Rank != snapshot.NoRank || s.Producer != "memdiag engine" {
		t.Errorf("it says %+v, rank %d, by %q", s.Mark, s.Rank, s.Producer)
	}
	if len(s.Devices) != 2 || s.Devices[0].Limit != snapshot.GiB || s.Devices[1].Limit != snapshot.Unknown ||
		s.Devices[1].Kind != snapshot.Vulkan || s.Devices[1].Index != 1 || s.Devices[1].Name != "bare" {
		t.Errorf("devices are %+v", s.Devices)
	}
	checkSnapshot(t, s)

	type row struct {
		Device    int
		Offset    int64
		Size      snapshot.Bytes
		Requested snapshot.Bytes
		State     string
		Birth     int64
		Owners    string
		Stack     int
	}
	var got []row
	for i, seg := range s.Blocks.Segment {
		r := row{s.Segments[seg].Device, int64(s.Blocks.Address[i] - s.Segments[seg].Address), s.Blocks.Size[i], s.Blocks.Requested[i],
			s.Blocks.State[i].String(), s.Blocks.BirthStep[i], fmt.Sprint(s.Blocks.Owners[i].Names()), len(s.Stacks.Frames(s.Blocks.Stack[i]))}
		got = append(got, r)
	}
	const mib = snapshot.MiB
	small := []row{{0, 0, 512, 100, "live", 0, "[user]", 2}, {0, 512, 2*mib - 512, 0, "free", -1, "[]", 0}}
	large := []row{{0, 0, 3 * mib, 3 * mib, "live", 7, "[user tape]", 2}, {0, int64(3 * mib), 17 * mib, 0, "free", -1, "[]", 0}}
	want := slices.Concat(small, large)
	if b.Buffer().Memory.(*mem.HostMemory).Address() < a.Buffer().Memory.(*mem.HostMemory).Address() {
		want = slices.Concat(large, small)
	}
	want = append(want, row{1, 0, 1024, 1000, "live", 0, "[user]", 2}, row{1, 1024, 2*mib - 1024, 0, "free", -1, "[]", 0})
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// checkSnapshot tells where the promises of the model are broken.
func checkSnapshot(t testing.TB, s *snapshot.Snapshot) {
	t.Helper()
	b := &s.Blocks
	for name, n := range map[string]int{
		"segment": len(b.Segment), "address": len(b.Address), "requested": len(b.Requested), "state": len(b.State),
		"stack": len(b.Stack), "birth step": len(b.BirthStep), "owners": len(b.Owners),
	} {
		if n != b.Len() {
			t.Errorf("column %s has %d rows of %d", name, n, b.Len())
		}
	}
	sums := make([]snapshot.Meters, len(s.Devices))
	row := 0
	for i, seg := range s.Segments {
		if i > 0 && (s.Segments[i-1].Device > seg.Device || s.Segments[i-1].Device == seg.Device && s.Segments[i-1].Address >= seg.Address) {
			t.Errorf("segment %d is out of order", i)
		}
		if seg.FirstBlock != row || seg.Stack == snapshot.NoStack {
			t.Errorf("segment %d begins at row %d, want %d; stack %d", i, seg.FirstBlock, row, seg.Stack)
		}
		sum := &sums[seg.Device]
		sum.Reserved += seg.Size
		end := seg.Address
		for range seg.NumBlocks {
			if b.Segment[row] != int32(i) || b.Address[row] != end {
				t.Fatalf("row %d is not after the one before it", row)
			}
			end += uint64(b.Size[row])
			if b.State[row] == snapshot.Live {
				sum.Requested += b.Requested[row]
				sum.Allocated += b.Size[row]
				sum.Active += b.Size[row]
			}
			row++
		}
		if end != seg.Address+uint64(seg.Size) {
			t.Errorf("segment %d is not covered", i)
		}
	}
	if row != b.Len() {
		t.Errorf("%d rows of %d are in segments", row, b.Len())
	}
	bytes := make([]snapshot.Bytes, len(s.Devices))
	for _, site := range s.Sites() {
		bytes[site.Device] += site.Bytes
	}
	for i, d := range s.Devices {
		sums[i].Driver = d.Meters.Driver
		if d.Meters != sums[i] || bytes[i] != sums[i].Allocated {
			t.Errorf("device %d: meters %+v, sums %+v, sites %s", i, d.Meters, sums[i], bytes[i])
		}
	}
}

// TestASeriesNamesWhatLivesWithinAStepOnly: a backward pass, whose blocks are all gone
// at the step's end, shows by that.
func TestASeriesNamesWhatLivesWithinAStepOnly(t *testing.T) {
	d := newDevice(t, mem.Options{})
	series := mem.NewSeries(d)
	alloc(t, d, 1000).Release(user)
	series.Append(snapshot.Mark{Step: 1})
	if out := series.Series(); len(out.Sites) != 1 || len(out.Points[0].Sites) != 0 || len(out.Stacks.Frames(out.Sites[0].Stack)) == 0 {
		t.Errorf("sites %v, counted %v; want one site with a stack that counts nothing", out.Sites, out.Points[0].Sites)
	}
}

func TestASeriesCountsWhatSnapshotsCount(t *testing.T) {
	d, other := newDevice(t, mem.Options{}), mem.NewDevice(bare{}, mem.Options{Index: 1})
	series := mem.NewSeries(d, other)
	var kept []*mem.Storage
	for step := range int64(5) {
		mark := snapshot.Mark{Step: step}
		d.SetMark(mark)
		kept = append(kept, alloc(t, d, 1000), alloc(t, d, 1000)) // two calls, one line, one stack
		if step == 3 {
			kept[0].Release(user)
			alloc(t, other, 3000)
		}
		series.Append(mark)

		out := series.Series()
		point := out.Points[len(out.Points)-1]
		taken := mem.Take(mark, d, other)
		if point.Mark != mark || len(point.Meters) != 2 || point.Meters[0].Allocated != taken.Devices[0].Meters.Allocated ||
			out.Devices[0].Meters != point.Meters[0] || point.Meters[1].Driver != snapshot.Unknown {
			t.Errorf("step %d: point %+v, devices %+v", step, point, out.Devices)
		}
		want := make(map[snapshot.SiteKey]snapshot.SiteCount)
		for _, site := range taken.Sites() {
			want[site.SiteKey] = snapshot.SiteCount{Count: site.Count, Bytes: site.Bytes}
		}
		got := make(map[snapshot.SiteKey]snapshot.SiteCount)
		last := int32(-1)
		for _, c := range point.Sites {
			if c.Site <= last {
				t.Errorf("step %d: site %d after %d", step, c.Site, last)
			}
			last = c.Site
			site := out.Sites[c.Site]
			got[snapshot.SiteKey{Device: site.Device, Hash: out.Stacks.Hash(site.Stack)}] = snapshot.SiteCount{Count: c.Count, Bytes: c.Bytes}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("step %d: snapshot (-) and series (+) differ: %s", step, d)
		}
	}
	if n := len(series.Series().Sites); n != 2 {
		t.Errorf("%d sites, want one on each device", n)
	}
	series.Series().Points = nil // as a writer does that streams
	series.Append(snapshot.Mark{Step: 9})
	if n := len(series.Series().Points); n != 1 {
		t.Errorf("%d points after clearing", n)
	}
}

func BenchmarkTake(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("blocks=%d", n), func(b *testing.B) {
			d := mem.NewDevice(bare{}, mem.Options{})
			for range n {
				alloc(b, d, 2048)
			}
			b.ReportAllocs()
			for b.Loop() {
				mem.Take(snapshot.Mark{}, d)
			}
		})
	}
}
