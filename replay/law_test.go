package replay

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Whatever is asked for: blocks of a segment follow one another, no two free neighbours are apart, the lists have what is free, the
// sums are right, and no limit is exceeded.
func TestTheAllocatorKeepsItsInvariants(t *testing.T) {
	texts := []string{"", "expandable_segments:True", "max_split_size_mb:32", "max_split_size_mb:32,expandable_segments:True", "roundup_power2_divisions:4", "garbage_collection_threshold:0.5"}
	rapid.Check(t, func(t *rapid.T) {
		s, err := Parse(rapid.SampledFrom(texts).Draw(t, "settings"))
		if err != nil {
			t.Fatal(err)
		}
		limit := rapid.SampledFrom([]int64{0, 100 << 20, 300 << 20}).Draw(t, "limit")
		a := newAllocator(s, limit)
		var live []row
		for range rapid.IntRange(1, 120).Draw(t, "operations") {
			switch rapid.IntRange(0, 9).Draw(t, "operation") {
			case 0:
				a.empty()
			case 1, 2, 3, 4:
				if len(live) > 0 {
					i := rapid.IntRange(0, len(live)-1).Draw(t, "which")
					a.free(live[i])
					live = slices.Delete(live, i, i+1)
				}
			default:
				size := rapid.OneOf(rapid.Int64Range(1, 1<<20), rapid.Int64Range(1<<20, 50<<20)).Draw(t, "size")
				key := poolKey{stream: rapid.IntRange(0, 1).Draw(t, "stream")}
				if at := a.take(size, key); at != none {
					live = append(live, at)
					if b := a.blocks[at]; b.size < size || b.pool.small != (s.round(size) <= smallLimit) {
						t.Fatalf("%d bytes got %+v", size, b)
					}
				}
			}
			holds(t, a, live)
		}
		for _, at := range live {
			a.free(at)
		}
		a.empty()
		if a.reserved != 0 && s.Collect == 0 || a.active != 0 || a.givable != 0 {
			t.Fatalf("with nothing live %d stay reserved, %d active, %d givable", a.reserved, a.active, a.givable)
		}
	})
}

func holds(t *rapid.T, a *allocator, live []row) {
	var reserved, active, givable int64
	listed := make(map[row]bool)
	for _, p := range a.order {
		if !slices.IsSortedFunc(p.free, place.compare) || !slices.IsSortedFunc(p.unmapped, place.compare) {
			t.Fatal("a list is not sorted")
		}
		for _, list := range [][]place{p.free, p.unmapped} {
			for _, f := range list {
				listed[f.row] = true
				if b := a.blocks[f.row]; b.taken || b.address != f.address || b.mapped && b.size != f.size || b.pool != p {
					t.Fatalf("listed %+v is %+v", f, b)
				}
			}
		}
	}
	for i := range a.blocks {
		b := &a.blocks[i]
		if slices.Contains(a.spare, row(i)) {
			continue
		}
		if b.taken == listed[row(i)] {
			t.Fatalf("taken %v, listed %v: %+v", b.taken, listed[row(i)], *b)
		}
		if b.taken != slices.Contains(live, row(i)) {
			t.Fatalf("nobody has %+v", *b)
		}
		if b.mapped {
			reserved += b.size
		}
		if b.taken {
			active += b.size
		} else if b.mapped {
			givable += a.gives(row(i))
		}
		if b.next != none {
			n := &a.blocks[b.next]
			if n.address != b.address+uint64(b.size) || n.prev != row(i) || n.pool != b.pool {
				t.Fatalf("%+v is followed by %+v", *b, *n)
			}
			if !b.taken && !n.taken && b.mapped == n.mapped {
				t.Fatalf("%+v and %+v are apart", *b, *n)
			}
		}
	}
	if reserved != a.reserved || active != a.active || givable != a.givable {
		t.Fatalf("reserved %d, active %d, givable %d; the blocks say %d, %d, %d", a.reserved, a.active, a.givable, reserved, active, givable)
	}
	if a.reserved > a.limit {
		t.Fatalf("%d reserved, above the limit of %d", a.reserved, a.limit)
	}
}
