package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A recording of heaptrack has no end that tells: half of one was read as if whole.
func TestAFileThatBecomesShorterWhileItIsReadIsNoSnapshot(t *testing.T) {
	path := write(t, t.TempDir(), "heaptrack_10", "v 10400 3\ns 1 f\ni 1 0 1\nt 1 0\na 8 1\n"+strings.Repeat("+ 0\n- 0\n", 200_000))
	shorten := func(string, int64, int64) {
		if err := os.Truncate(path, 50_000); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(path); err != nil {
		t.Fatalf("a file that stays: %v", err)
	}
	_, err := Opener{Progress: shorten}.Open(path)
	if err == nil || !strings.Contains(err.Error(), "byte 50000: the file became shorter while it was read") {
		t.Errorf("got %v", err)
	}
}

// "memdiag diff latest" found no snapshots behind the link.
func TestALinkToARunIsTheRun(t *testing.T) {
	dir := t.TempDir()
	newRun(t, filepath.Join(dir, "run"), noon, 0, 50)
	write(t, dir, "others/step_1/a.json", torchJSON(1))
	write(t, dir, "others/step_2/a.json", torchJSON(2))
	for _, name := range []string{"run", "others"} {
		link := filepath.Join(dir, "latest-"+name)
		if err := os.Symlink(name, link); err != nil {
			t.Skip(err) // some systems let no user make links
		}
		run, err := OpenRun(link)
		if err != nil || len(run.Snapshots) != 2 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
