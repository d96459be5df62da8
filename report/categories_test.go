package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// Shares are of the device's live bytes, largest first, and what is not known comes last however much it is.
func TestWhatLiveMemoryIsForIsShown(t *testing.T) {
	s := last(pyramid())
	b := &s.Blocks
	b.Owners = nil
	b.Category = make([]snapshot.Category, b.Len())
	want, rows := make(map[string]int64), make(map[string]int64)
	for row := range b.Category {
		if b.State[row] == snapshot.Live {
			b.Category[row] = []snapshot.Category{snapshot.NoCategory, snapshot.Parameter, snapshot.NoCategory, snapshot.Collective}[row%4]
			want[b.Category[row].String()] += int64(b.Size[row])
			rows[b.Category[row].String()] += b.CountOf(row)
		}
	}
	var shown struct {
		Devices []struct {
			Categories []struct {
				Category      string
				Blocks, Bytes int64
			}
		}
	}
	text := rendered(t, func(b *bytes.Buffer) error { return ShowJSON(b, s, TextOptions{}) })
	if err := json.Unmarshal(text, &shown); err != nil {
		t.Fatal(err)
	}
	got := shown.Devices[0].Categories
	if len(got) != 3 || got[2].Category != "" || got[0].Bytes < got[1].Bytes {
		t.Errorf("in the order %+v", got)
	}
	for _, c := range got {
		if c.Bytes != want[c.Category] || c.Blocks != rows[c.Category] {
			t.Errorf("%q has %d bytes in %d blocks, want %d in %d", c.Category, c.Bytes, c.Blocks, want[c.Category], rows[c.Category])
		}
	}
	page := string(rendered(t, func(b *bytes.Buffer) error { return Show(b, s, TextOptions{Top: 3}) }))
	_, table, ok := strings.Cut(page, "What live memory is for\n")
	table, _, _ = strings.Cut(table, "\n\n")
	lines := strings.Split(table, "\n")
	if !ok || len(lines) != 4 || !strings.HasPrefix(lines[3], "  not known ") || !strings.Contains(table, "  parameters ") || !strings.Contains(table, "  collective buffers ") {
		t.Errorf("shown as\n%s", table)
	}
	if !strings.Contains(lines[3], snapshot.Bytes(want[""]).String()) {
		t.Errorf("%q lacks %s", lines[3], snapshot.Bytes(want[""]))
	}
	b.Category = nil
	if page := string(rendered(t, func(b *bytes.Buffer) error { return Show(b, s, TextOptions{Top: 3}) })); strings.Contains(page, "is for") {
		t.Error("there is a table where nothing is known")
	}
}

// A site has a category if all of its blocks have it.
func TestASiteHasTheCategoryOfAllItsBlocks(t *testing.T) {
	of := []snapshot.Category{snapshot.Gradient, snapshot.Gradient, snapshot.NoCategory}
	for _, c := range []struct {
		rows []int32
		of   []snapshot.Category
		want string
	}{{[]int32{0, 1}, of, "gradient"}, {[]int32{0, 2}, of, ""}, {[]int32{2}, of, ""}, {[]int32{0}, nil, ""}} {
		if got := categoryOf(&snapshot.Site{Rows: c.rows}, c.of); got != c.want {
			t.Errorf("rows %v of %v: %q, want %q", c.rows, c.of, got, c.want)
		}
	}
}
