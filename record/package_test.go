package record_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/record"
)

func TestPackageIsUnpackedOnceForItsContent(t *testing.T) {
	dir := t.TempDir()
	first, err := record.Package(dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(first, "memdiag", "pytest.py"))
	if err != nil || !strings.Contains(string(text), "def pytest_configure") {
		t.Errorf("the plugin: %v, %q", err, text)
	}
	second, err := record.Package(dir)
	if err != nil || second != first {
		t.Errorf("again: %s, %v; it was %s", second, err, first)
	}
	if names, err := os.ReadDir(dir); len(names) != 1 {
		t.Errorf("left behind: %v, %v", names, err)
	}
}
