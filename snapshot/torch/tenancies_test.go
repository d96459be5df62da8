package torch

import (
	"testing"

	"pgregory.net/rapid"
)

// TestTenanciesAreAMap compares the tables with Go's map, on addresses that lie
// as closely as an allocator's, some of them not aligned.
func TestTenanciesAreAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		only := rapid.Bool().Draw(t, "only what matters")
		table, model := newTenancies(), map[uint64]int64{}
		matters := func(address uint64) bool { return address/512%3 == 0 }
		if table.only = only; only {
			for at := uint64(0); at <= 300*512+1; at++ {
				if matters(at) {
					table.matters(at)
				}
			}
		}
		address := rapid.Custom(func(t *rapid.T) uint64 {
			return rapid.Uint64Range(0, 300).Draw(t, "block")*512 + rapid.SampledFrom([]uint64{0, 0, 0, 1}).Draw(t, "odd")
		})
		for i := range rapid.IntRange(0, 2000).Draw(t, "operations") {
			at := address.Draw(t, "address")
			if rapid.IntRange(0, 2).Draw(t, "operation") > 0 {
				table.open(at, tenancy{time: int64(i), size: 7})
				model[at] = int64(i)
				continue
			}
			_, want := model[at]
			if got := table.close(at); got != want {
				t.Fatalf("close(%d) = %v, want %v", at, got, want)
			}
			delete(model, at)
		}
		if table.count != len(model) {
			t.Fatalf("%d open, want %d", table.count, len(model))
		}
		for at := uint64(0); at <= 300*512+1; at++ {
			got, ok := table.at(at)
			want, open := model[at]
			if only && !matters(at) {
				want = 0
			}
			if ok != open || open && got.time != want {
				t.Fatalf("at(%d) = %v, %v, want %d, %v", at, got, ok, want, open)
			}
		}
	})
}
