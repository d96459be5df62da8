package fleet

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A run whose clock is a day ahead, one by the clock without steps, and one without times.
func TestTheNextToDieGoesByEachRunsClock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fleet")
	add := func(id string, step int64, last, full time.Time) {
		run := testRun{id: id, status: "unfinished", ranks: 1, growth: 1}
		tables := run.tables()
		ranks := tables["ranks"]
		ranks.Columns[len(ranks.Columns)-2].Ints[0], ranks.Columns[len(ranks.Columns)-1].Ints[0] = step, micros(full)
		tables["series"].Append(id, 0, 1000, last, "cuda:0", 1, 1, 1)
		if _, err := Add(dir, tables); err != nil {
			t.Fatal(err)
		}
	}
	ahead := epoch.Add(24 * time.Hour)
	add("aaaaaaaa00000001", 9000, ahead, ahead.Add(time.Hour))
	add("aaaaaaaa00000002", -1, epoch, epoch.Add(2*time.Hour))
	add("aaaaaaaa00000003", 5000, time.Time{}, time.Time{})
	next, err := opened(t, dir).Next()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range next {
		got = append(got, d.Run.ID[15:]+" "+(time.Duration(d.Left)*time.Second).String())
	}
	if want := "1 1h0m0s, 2 2h0m0s, 3 -1s"; strings.Join(got, ", ") != want {
		t.Errorf("%v, want %s", got, want)
	}
	var b strings.Builder
	if err := WriteNext(&b, next); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"1h0m0s ", " 2026-03-05 06:06 ", "9000 "} {
		if !strings.Contains(b.String(), line) {
			t.Errorf("no %q in\n%s", line, b.String())
		}
	}
}
