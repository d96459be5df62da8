package record

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// TestTheKernelsOwnMemoryIsThatWhichItCannotTakeBack: entries of folders that were read are no growth.
func TestTheKernelsOwnMemoryIsThatWhichItCannotTakeBack(t *testing.T) {
	for text, want := range map[string]snapshot.Bytes{
		"anon 1\nkernel 700\nsock 30\nslab_reclaimable 500\n": 230,
		"anon 1\nsock 30\nslab_reclaimable 500\n":             snapshot.Unknown,
		"total_rss 1\n": snapshot.Unknown,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "memory.stat"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		at := groupFolder{&groupV2, dir, dir}
		if got := at.kernel(); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
