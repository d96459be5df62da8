package replay

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	s, err := Parse("max_split_size_mb:128, expandable_segments:True,roundup_power2_divisions:[256:1,512:2,1024:4,>:8],garbage_collection_threshold:0.8,backend:native,pinned_num_register_threads:8")
	if err != nil || s.MaxSplit != 128<<20 || !s.Expandable || s.Collect != 0.8 || len(s.Unknown) > 0 {
		t.Errorf("%+v, %v", s, err)
	}
	want := [divisionSizes]int64{1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 8, 8, 8, 8, 8}
	if s.Divisions != want {
		t.Errorf("divisions %v, want %v", s.Divisions, want)
	}
	if s, err := Parse("roundup_power2_divisions:4,future_option:1"); err != nil || s.Divisions[0] != 4 || s.Divisions[15] != 4 || strings.Join(s.Unknown, "") != "future_option" {
		t.Errorf("%+v, %v", s, err)
	}
	for _, bad := range []string{"max_split_size_mb:20", "max_split_size_mb:x", "expandable_segments:yes", "roundup_power2_divisions:3", "roundup_power2_divisions:[256:1", "roundup_power2_divisions:[0:1]", "garbage_collection_threshold:1.5", "garbage_collection_threshold:NaN"} {
		if _, err := Parse(bad); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}

// The first is the example of PyTorch's documentation.
func TestRound(t *testing.T) {
	four, err := Parse("roundup_power2_divisions:4")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		settings      Settings
		request, want int64
	}{
		{four, 1200 << 10, 1280 << 10},
		{four, 1200, 1536}, // too small for divisions
		{four, 4096, 4096},
		{four, 5 << 20, 5 << 20},
		{four, 5<<20 + 1, 6 << 20},
		{Settings{}, 1, 512},
		{Settings{}, 513, 1024},
		{Settings{}, 1200 << 10, 1200 << 10},
	} {
		if got := c.settings.round(c.request); got != c.want {
			t.Errorf("%s: %d becomes %d, want %d", c.settings.Text, c.request, got, c.want)
		}
	}
}

func TestSegmentFor(t *testing.T) {
	for size, want := range map[int64]int64{512: 2 << 20, 1 << 20: 2 << 20, 1<<20 + 512: 20 << 20, 10<<20 - 512: 20 << 20, 10 << 20: 10 << 20, 11 << 20: 12 << 20} {
		if got := segmentFor(size); got != want {
			t.Errorf("%d: %d, want %d", size, got, want)
		}
	}
}
