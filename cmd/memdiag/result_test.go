package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func writes(text string, result error) func(io.Writer) error {
	return func(w io.Writer) error {
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
		return result
	}
}

// names lists a folder, hidden files included.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestResultGoesToStandardOutput(t *testing.T) {
	for _, path := range []string{"", "-"} {
		env, stdout, _ := newTestEnvironment()
		if err := env.result(path, true, writes("data", nil)); err != nil || stdout.String() != "data" {
			t.Errorf("path %q: %q, %v", path, stdout, err)
		}
	}
}

func TestBinaryIsNotWrittenToATerminal(t *testing.T) {
	env, stdout, _ := newTestEnvironment()
	env.out.tty = true
	err := env.result("", true, writes("\x00", nil))
	if exitCode(err) != exitUsage || hintOf(err) == "" || stdout.Len() > 0 {
		t.Errorf("error %v, stdout %q", err, stdout)
	}
	if err := env.result("", false, writes("text", nil)); err != nil {
		t.Errorf("text is refused: %v", err)
	}
}

func TestResultFileAppearsWholeOrNotAtAll(t *testing.T) {
	broken := errors.New("no such site")
	dir := t.TempDir()
	path := filepath.Join(dir, "growth.svg")
	env, _, _ := newTestEnvironment()

	if err := env.result(path, true, writes("half", broken)); !errors.Is(err, broken) {
		t.Errorf("error %v, want what the writer returned", err)
	}
	if left := names(t, dir); left != nil {
		t.Errorf("left behind: %v", left)
	}
	if err := env.result(path, true, writes("whole", nil)); err != nil {
		t.Fatal(err)
	}
	if err := env.result(path, true, writes("half", broken)); err == nil {
		t.Error("no error")
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "whole" {
		t.Errorf("a failed write changed the file: %q, %v", text, err)
	}
	if left := names(t, dir); !slices.Equal(left, []string{"growth.svg"}) {
		t.Errorf("left behind: %v", left)
	}
}

func TestResultInNoFolderNamesTheFileAskedFor(t *testing.T) {
	env, _, _ := newTestEnvironment()
	path := filepath.Join(t.TempDir(), "none", "a.svg")
	err := env.result(path, false, writes("x", nil))
	if err == nil || err.Error() != path+": no such file or directory" || exitCode(err) != exitOwn {
		t.Errorf("error %v, exit code %d", err, exitCode(err))
	}
}

func TestResultKeepsLinks(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "run-2.svg"), filepath.Join(dir, "latest.svg")
	if err := os.WriteFile(target, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	env, _, _ := newTestEnvironment()
	if err := env.result(link, false, writes("new", nil)); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(target); err != nil || string(text) != "new" {
		t.Errorf("behind the link: %q, %v", text, err)
	}
}

func TestResultIsWrittenBehindALinkToNothing(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "runs"), 0o700); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"latest.svg": "runs/next.svg", "runs/next.svg": "../new.svg", "loop.svg": "loop.svg"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	env, _, _ := newTestEnvironment()
	if err := env.result(filepath.Join(dir, "latest.svg"), false, writes("new", nil)); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "new.svg")); err != nil || string(text) != "new" {
		t.Errorf("behind the links: %q, %v", text, err)
	}
	if err := env.result(filepath.Join(dir, "loop.svg"), false, writes("new", nil)); exitCode(err) != exitOwn {
		t.Errorf("a link to itself: %v", err)
	}
	if left := names(t, dir); !slices.Equal(left, []string{"latest.svg", "loop.svg", "new.svg", "runs"}) {
		t.Errorf("there are %v", left)
	}
}

func TestFullDiskNamesTheFileAskedFor(t *testing.T) {
	// Opened here and not by result, so that a defect cannot rename a file over
	// the device.
	file, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("this system has no /dev/full")
	}
	env, _, _ := newTestEnvironment()
	err = env.fill("a.svg", file, writes("x", nil))
	if err == nil || err.Error() != "a.svg: no space left on device" || exitCode(err) != exitOwn {
		t.Errorf("error %v", err)
	}
}
