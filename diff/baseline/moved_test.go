package baseline

import (
	"slices"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// TestALineMovesWithWhatGrowsAboveIt: `main()` at the end of a file whose functions became longer is still the same call.
func TestALineMovesWithWhatGrowsAboveIt(t *testing.T) {
	at := func(first int) snapshot.Function { return snapshot.Function{First: first} }
	was := map[string]snapshot.Function{"<module>": at(1), "Tracker.update": at(14), "main": at(32), "main.<locals>.step": at(36), "report": at(60)}
	is := map[string]snapshot.Function{"<module>": at(1), "Tracker.update": at(14), "main": at(34), "main.<locals>.step": at(38), "report": at(65)}
	for _, c := range []struct {
		function string
		line     int
		want     []int
	}{
		{"<module>", 9, []int{9, 9}},
		{"<module>", 20, []int{20, 22}}, // between two functions: what has grown may stand before or after it
		{"<module>", 48, []int{50, 53}},
		{"<module>", 70, []int{75, 75}},
		{"main", 3, []int{3, 3}},
		{"main", 10, []int{10, 10}},
		{"Tracker.update", 1, []int{1, 1}},
	} {
		if got := moved(c.function, c.line, was, is); !slices.Equal(got, c.want) {
			t.Errorf("line %d of %s: %v, want %v", c.line, c.function, got, c.want)
		}
	}
}
