package record_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/memdiag/memdiag/record"
	"github.com/memdiag/memdiag/record/recordtest"
)

// oldVersions makes n folders as of other versions of the package, each last used a day before the one after it, the youngest two
// days ago.
func oldVersions(t *testing.T, dir string, n int) (folders []string) {
	t.Helper()
	for i := range n {
		folder := filepath.Join(dir, fmt.Sprintf("python-%016x", i))
		if err := os.MkdirAll(filepath.Join(folder, "memdiag"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "in-use"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		ago(t, folder, time.Duration(n-i+1)*24*time.Hour)
		folders = append(folders, folder)
	}
	return folders
}

// ago gives a folder the time of an earlier use.
func ago(t *testing.T, folder string, d time.Duration) {
	t.Helper()
	at := time.Now().Add(-d)
	if err := os.Chtimes(folder, at, at); err != nil {
		t.Fatal(err)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestVersionsOfThePackageThatNobodyUsesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	old := oldVersions(t, dir, 12)
	for _, folder := range old[2:] {
		ago(t, folder, time.Hour) // nobody may have imported what python-path printed as yet
	}
	left, other, third := filepath.Join(dir, "unpacking-1"), filepath.Join(dir, "torch"), filepath.Join(dir, "python-torch")
	for _, folder := range []string{left, other, third} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		ago(t, folder, 48*time.Hour)
	}
	folder, err := record.Package(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range old[:2] {
		if exists(path) {
			t.Errorf("%s is still there", path)
		}
	}
	for _, path := range append(old[2:], folder, other, third) {
		if !exists(path) {
			t.Errorf("%s is gone", path)
		}
	}
	if exists(left) {
		t.Error("what a killed process left is still there")
	}
}

func TestTheLastVersionsOfThePackageStay(t *testing.T) {
	dir := t.TempDir()
	old := oldVersions(t, dir, 10)
	folder, err := record.Package(dir)
	if err != nil {
		t.Fatal(err)
	}
	stay := slices.DeleteFunc(append(slices.Clone(old), folder), func(path string) bool { return !exists(path) })
	if want := append(slices.Clone(old[3:]), folder); !slices.Equal(stay, want) {
		t.Errorf("%q stay; want %q", stay, want)
	}
}

func TestAVersionOfThePackageWithoutALockStaysForLonger(t *testing.T) {
	dir := t.TempDir()
	old := oldVersions(t, dir, 10)
	for i, age := range []time.Duration{40 * 24 * time.Hour, 20 * 24 * time.Hour} {
		if err := os.Remove(filepath.Join(old[i], "in-use")); err != nil {
			t.Fatal(err)
		}
		ago(t, old[i], age)
	}
	if _, err := record.Package(dir); err != nil || exists(old[0]) || !exists(old[1]) {
		t.Errorf("%v; the folder is there after 40 days: %v, after 20 days: %v", err, exists(old[0]), exists(old[1]))
	}
}

// TestAVersionOfThePackageThatAProcessUsesStays also has the process end, after which it goes.
func TestAVersionOfThePackageThatAProcessUsesStays(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	used, err := record.Package(dir)
	if err != nil {
		t.Fatal(err)
	}
	cmd := recordtest.Command(t, python, "-c", "import memdiag, sys\nprint(memdiag.__file__, flush=True)\nsys.stdin.read()")
	cmd.Env = append(cmd.Env, "PYTHONPATH="+used)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	was := filepath.Join(dir, "python-00000000000000ff")
	if err := os.Rename(used, was); err != nil { // as if it were another version's
		t.Fatal(err)
	}
	oldVersions(t, dir, 9) // used later
	ago(t, was, 90*24*time.Hour)
	if _, err := record.Package(dir); err != nil || !exists(was) {
		t.Fatalf("%v; the folder that a process uses is there: %v", err, exists(was))
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := record.Package(dir); err != nil || exists(was) {
		t.Errorf("%v; the folder that nobody uses is there: %v", err, exists(was))
	}
}

// locked has the lock alone, as one that removes the folder, when a program imports the package.
const locked = `
import fcntl, os, sys, time
folder = sys.argv[1]
use = os.open(os.path.join(folder, "in-use"), os.O_RDWR)
fcntl.flock(use, fcntl.LOCK_EX)
import memdiag
print(time.time() - os.stat(folder).st_mtime < 3600)
`

func TestAVersionOfThePackageIsUsedAlsoWhileAnotherHasItsLock(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip(err)
	}
	folder, err := record.Package(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ago(t, folder, 48*time.Hour)
	cmd := recordtest.Command(t, python, "-B", "-c", locked, folder)
	cmd.Env = append(cmd.Env, "PYTHONPATH="+folder)
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "True\n" {
		t.Errorf("%v: %s", err, out)
	}
}

func TestManyMayUnpackAndRemoveAtOnce(t *testing.T) {
	dir := t.TempDir()
	folder, err := record.Package(dir)
	if err != nil {
		t.Fatal(err)
	}
	oldVersions(t, dir, 30)
	ago(t, folder, 60*24*time.Hour)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			got, err := record.Package(dir)
			if err != nil || got != folder || !exists(filepath.Join(got, "memdiag", "__init__.py")) {
				t.Errorf("%s, %v", got, err)
			}
		})
	}
	all.Wait()
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 8 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
}

func TestAFolderThatMayNotBeWrittenIsUsedAsItIs(t *testing.T) {
	dir := t.TempDir()
	folder, err := record.Package(dir)
	if err != nil {
		t.Fatal(err)
	}
	old := oldVersions(t, dir, 10)
	for _, path := range []string{folder, dir} {
		if err := os.Chmod(path, 0o555); err != nil { //nolint:gosec // it is to be read
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(path, 0o755) }) //nolint:gosec // so that it can be removed
	}
	if again, err := record.Package(dir); err != nil || again != folder {
		t.Errorf("%s, %v", again, err)
	}
	if os.Geteuid() != 0 && !exists(old[0]) { // root may write everywhere
		t.Error("what may not be removed is gone")
	}
}
