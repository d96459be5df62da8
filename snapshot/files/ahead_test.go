package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
)

func TestFilesAreOpenedAheadInTheirOrder(t *testing.T) {
	dir := t.TempDir()
	var names []string
	for i := range 3 * openAtOnce {
		name := fmt.Sprint(i)
		if names = append(names, name); i%5 == 0 {
			continue // there is none
		}
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, i), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := openAhead(dir, names)
	for i := range names {
		f, err := o.next()
		if missing := i%5 == 0; errors.Is(err, fs.ErrNotExist) != missing || !missing && f.size != int64(i) {
			t.Fatalf("%d: %+v, %v", i, f, err)
		}
		if err == nil {
			f.close()
		}
	}
}

func TestFewAreWaitedForAtOnce(t *testing.T) {
	var now, done atomic.Int64
	all := make(chan struct{})
	fewAtOnce(2*openAtOnce, func(int) {
		if n := now.Add(1); n == openAtOnce {
			close(all) // each of the first waits for the others
		} else if n > openAtOnce && done.Load() == 0 {
			t.Errorf("%d at once", n)
		}
		<-all
		done.Add(1)
	})
	if done.Load() != 2*openAtOnce {
		t.Errorf("%d were done", done.Load())
	}
}
