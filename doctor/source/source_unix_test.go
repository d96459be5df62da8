//go:build unix

package source

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A run names what it likes. A pipe would keep memdiag waiting for a writer, and a link lead it to a file of secrets.
func TestOnlyRegularFilesOfPythonAreRead(t *testing.T) {
	dir := t.TempDir()
	pipe, link, secret, whole := filepath.Join(dir, "pipe.py"), filepath.Join(dir, "link.py"), filepath.Join(dir, "secret"), filepath.Join(dir, "whole.py")
	for _, err := range []error{
		syscall.Mkfifo(pipe, 0o600), os.WriteFile(secret, []byte("x"), 0o600), os.Symlink(secret, link),
		os.WriteFile(whole, []byte("x = 1\n"), 0o600), os.Symlink(whole, filepath.Join(dir, "another.py")), os.Symlink("/dev/zero", filepath.Join(dir, "zero.py")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	read := make(chan map[string]bool, 1)
	go func() {
		out := make(map[string]bool)
		for _, name := range []string{"pipe.py", "link.py", "secret", "zero.py", "none.py", "whole.py", "another.py"} {
			_, err := ReadPython(filepath.Join(dir, name))
			out[name] = err == nil
		}
		_, err := Read(pipe)
		out["pipe.py"] = out["pipe.py"] || err == nil
		read <- out
	}()
	select {
	case got := <-read:
		for name, ok := range got {
			if want := name == "whole.py" || name == "another.py"; ok != want {
				t.Errorf("%s: read %v, want %v", name, ok, want)
			}
		}
	case <-time.After(time.Minute):
		t.Fatal("it waits for a pipe")
	}
}
