package snapshot

import (
	"io/fs"
	"syscall"
	"testing"
)

func TestAFormatErrorNamesItsFileOnce(t *testing.T) {
	read := &fs.PathError{Op: "read", Path: "a/b.pickle", Err: syscall.EIO}
	for name, c := range map[string]struct {
		err  FormatError
		want string
	}{
		"a fault of the content":  {FormatError{File: "a/b.pickle", Offset: 7, Reason: "cut short"}, "a/b.pickle: byte 7: cut short"},
		"a fault of the disk":     {FormatError{File: "a/b.pickle", Reason: read.Error(), Err: read}, "a/b.pickle: byte 0: read: input/output error"},
		"one with its own reason": {FormatError{File: "a/b.pickle", Reason: "no memory", Err: read}, "a/b.pickle: byte 0: no memory"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.err.Error(); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
