package files

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// A thousand ranks with many snapshots each are one run; a folder with as many other files is none.
func TestManyFilesAreARunOnlyIfTheirNamesTellRanks(t *testing.T) {
	const most = 20
	for _, c := range []struct {
		what, name string
		ours, many bool
	}{
		{"a run of ours", "snapshot_%d_rank7.memdiag", true, true},
		{"dumps of ranks", "snapshot_%d_rank7.pickle", false, true},
		{"other files", "photo-%d.jpg", false, false},
	} {
		dir := t.TempDir()
		first := filepath.Join(dir, fmt.Sprintf(c.name, 0))
		if err := os.WriteFile(first, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		for i := 1; i <= most; i++ {
			if err := os.Link(first, filepath.Join(dir, fmt.Sprintf(c.name, i))); err != nil {
				t.Skip("no links:", err)
			}
		}
		list, err := listWithin(most, dir, c.ours, newNamePatterns())
		if (err == nil) != c.many || c.many && len(list.files) != most+1 {
			t.Errorf("%s: %d files, %v", c.what, len(list.files), err)
		}
	}
}
