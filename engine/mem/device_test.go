package mem_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/snapshot"
)

func alloc(t testing.TB, d *mem.Device, bytes int64) *mem.Storage {
	t.Helper()
	s, err := d.Alloc(bytes, snapshot.OwnedByUser)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestOutOfMemoryNamesTheTopSites(t *testing.T) {
	d := mem.NewDevice(mem.Host(), mem.Options{Limit: 24 * snapshot.MiB})
	defer d.Close()
	alloc(t, d, 100)
	alloc(t, d, 16<<20)
	_, err := d.Alloc(8<<20, snapshot.OwnedByUser)
	var oom *mem.OutOfMemoryError
	if !errors.As(err, &oom) {
		t.Fatalf("got %v", err)
	}
	t.Log(err)
	t.Log(d.Close())
	if !strings.Contains(err.Error(), "mem_test.alloc (engine/mem/device_test.go:") {
		t.Error(err)
	}
}
