package torch

import (
	"testing"

	"pgregory.net/rapid"
)

// TestTenanciesAreAMap compares the table with Go's map, on addresses that lie
// as closely as an allocator's.
func TestTenanciesAreAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table, model := newTenancies(), map[uint64]int64{}
		for i := range rapid.IntRange(0, 2000).Draw(t, "operations") {
			address := rapid.Uint64Range(0, 300).Draw(t, "address") * 512
			if rapid.IntRange(0, 2).Draw(t, "operation") > 0 {
				table.open(address, tenancy{int64(i), 7})
				model[address] = int64(i)
				continue
			}
			_, want := model[address]
			if got := table.close(address); got != want {
				t.Fatalf("close(%d) = %v, want %v", address, got, want)
			}
			delete(model, address)
		}
		if table.count != len(model) {
			t.Fatalf("%d open, want %d", table.count, len(model))
		}
		for address := uint64(0); address <= 300*512; address += 512 {
			got, ok := table.at(address)
			if want, open := model[address]; ok != open || open && got.time != want {
				t.Fatalf("at(%d) = %v, %v, want %d, %v", address, got, ok, want, open)
			}
		}
	})
}
