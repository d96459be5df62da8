package files

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

func TestAPageOfMemrayIsKnownByItsTitle(t *testing.T) {
	for _, name := range []string{"flamegraph.html.gz", "inverted.html.gz", "table.html.gz"} {
		s, err := Open(filepath.Join("..", "memray", "testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		if s.Producer != "memray" || len(s.Sites()) == 0 {
			t.Errorf("%s: %d sites, by %q", name, len(s.Sites()), s.Producer)
		}
	}
}

func TestWhatMemrayWritesForGprof2dotIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "graph.json")
	if err := os.WriteFile(path, []byte(`{"version": 0, "costs": [{"description": "Memory", "unit": "bytes"}], "events": []}`), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(path)
	if f, ok := errors.AsType[*snapshot.FormatError](err); !ok || !strings.Contains(f.Reason, "gprof2dot") || f.Hint != memrayHint {
		t.Errorf("%v", err)
	}
}
