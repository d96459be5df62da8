package record_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
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

func TestAPackageThatIsNotMemdiagsIsMadeAnew(t *testing.T) {
	dir := t.TempDir()
	folder, err := record.Package(dir)
	if err != nil {
		t.Fatal(err)
	}
	module := filepath.Join(folder, "memdiag", "__init__.py")
	want, err := os.ReadFile(module)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		change func() error
	}{
		{"a file is another", func() error { return os.WriteFile(module, []byte("import evil"), 0o666) }},
		{"a file is gone", func() error { return os.Remove(module) }},
		{"there is one more", func() error { return os.WriteFile(filepath.Join(folder, "memdiag", "json.py"), nil, 0o666) }},
		{"a file is a link", func() error { return errors.Join(os.Remove(module), os.Symlink("/etc/passwd", module)) }},
		{"it is a link", func() error { return errors.Join(os.RemoveAll(folder), os.Symlink(t.TempDir(), folder)) }},
		{"it is a file", func() error { return errors.Join(os.RemoveAll(folder), os.WriteFile(folder, nil, 0o666)) }},
		{"others may write to it", func() error { return os.Chmod(folder, 0o777) }},
	} {
		if err := c.change(); err != nil {
			t.Fatal(err)
		}
		again, err := record.Package(dir)
		text, read := os.ReadFile(module)
		if err != nil || again != folder || read != nil || !bytes.Equal(text, want) {
			t.Errorf("%s: %s, %v, %v", c.name, again, err, read)
		}
		if names, err := os.ReadDir(dir); len(names) != 1 {
			t.Errorf("%s: left behind: %v, %v", c.name, names, err)
		}
	}
	if names, err := os.ReadDir(filepath.Join(folder, "memdiag")); err != nil || slices.ContainsFunc(names, func(e os.DirEntry) bool { return e.Name() == "json.py" }) {
		t.Errorf("%v, %v", names, err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := record.Package(dir); err == nil && runtime.GOOS != "windows" {
		t.Error("it is put where others may write")
	}
}
