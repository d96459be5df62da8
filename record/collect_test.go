package record

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// A training that forked hundreds of processes had a line of each.
func TestWhatManyProcessesSayIsOneNote(t *testing.T) {
	dir := t.TempDir()
	for pid := range 300 {
		notes := `"all say this"`
		if pid < 2 {
			notes += `, "two say this"`
		}
		report := fmt.Sprintf(`{"pid": %d, "notes": [%s]}`, pid, notes)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf(".agent_%d.json", pid)), []byte(report), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var o Outcome
	o.collect(dir, snapshot.NoRank)
	if want := []string{"300 processes: all say this", "process 0: two say this", "process 1: two say this"}; !slices.Equal(o.Notes, want) {
		t.Errorf("%q", o.Notes)
	}
}
