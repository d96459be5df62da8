package mem

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

func TestInterningIsOneToOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table siteTable
		seen := make(map[string]SiteID)
		n := rapid.IntRange(1, 4*firstSlots).Draw(t, "distinct stacks") // the table grows on the way
		for i := range 2 * n {
			pcs := []uintptr{uintptr(i % n), uintptr(i % n / 7), 3}[:1+i%n%3]
			parent := SiteID(i % n % 5)
			k := fmt.Sprint(parent, pcs)
			id := table.intern(pcs, parent)
			if before, ok := seen[k]; ok && before != id {
				t.Fatalf("stack %v of parent %d is site %d and %d", pcs, parent, before, id)
			}
			seen[k] = id
			if s := table.get(id); s.parent != parent || !slices.Equal(s.pcs, pcs) {
				t.Fatalf("site %d is %v of parent %d, interned was %v of %d", id, s.pcs, s.parent, pcs, parent)
			}
		}
		if len(seen) != len(table.sites) {
			t.Fatalf("%d stacks became %d sites", len(seen), len(table.sites))
		}
	})
}

func TestSitesOfEqualHashAreToldApart(t *testing.T) {
	var table siteTable
	slots := table.room()
	const hash = firstSlots - 1 // the last slot: looking on wraps around
	sites := []*site{
		{id: 1, hash: hash, pcs: []uintptr{1, 2}},
		{id: 2, hash: hash, pcs: []uintptr{1, 3}},
		{id: 3, hash: hash, pcs: []uintptr{1, 2}, parent: 1},
		{id: 4, hash: hash + firstSlots, pcs: []uintptr{1, 2, 3}}, // of equal slot only
	}
	for _, s := range sites {
		found, at := find(slots, s.hash, s.pcs, s.parent)
		if found != nil {
			t.Fatalf("site %d is taken for %d", s.id, found.id)
		}
		slots[at].Store(s)
	}
	for _, s := range sites {
		if found, _ := find(slots, s.hash, s.pcs, s.parent); found != s {
			t.Errorf("site %d is found as %v", s.id, found)
		}
	}
}

func TestGoroutinesThatMeetAStackAtOnceGetOneSite(t *testing.T) {
	var table siteTable
	ids := make([][]SiteID, 8)
	var workers sync.WaitGroup
	for w := range ids {
		workers.Go(func() {
			for i := range uintptr(2000) {
				ids[w] = append(ids[w], table.intern([]uintptr{i, 7}, NoSite))
			}
		})
	}
	workers.Wait()
	for w := range ids {
		if !slices.Equal(ids[w], ids[0]) {
			t.Errorf("goroutines 0 and %d see other sites", w)
		}
	}
	if len(table.sites) != 2000 {
		t.Errorf("%d sites of 2000 stacks", len(table.sites))
	}
}

func BenchmarkSymbolise(b *testing.B) {
	var pcs [maxDepth]uintptr
	var n int
	descend(14, func() { n = callers(pcs[:]) })
	module := mainModule()
	b.ReportAllocs()
	for b.Loop() {
		symbolise(pcs[:n], module)
	}
}
