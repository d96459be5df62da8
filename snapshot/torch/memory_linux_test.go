package torch

import (
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// endless is a file of a prefix and a pattern that repeats.
type endless struct{ prefix, pattern string }

func (e endless) ReadAt(p []byte, at int64) (int, error) {
	for i := range p {
		if k := at + int64(i); k < int64(len(e.prefix)) {
			p[i] = e.prefix[k]
		} else {
			p[i] = e.pattern[(k-int64(len(e.prefix)))%int64(len(e.pattern))]
		}
	}
	return len(p), nil
}

// TestHostileFilesTakeLittleMemory reads 64 MiB of what would fill memory, in
// processes of their own, whose peak (or this one's, if higher) is then known.
func TestHostileFilesTakeLittleMemory(t *testing.T) {
	const begin = "\x80\x04}(\x8c\x08segments](}(\x8c\x06blocks]("
	const child = "MEMDIAG_TORCH_HOSTILE"
	const most, size = 200 << 20, 64 << 20
	cases := []struct {
		name string
		e    endless
		most snapshot.Bytes
	}{
		{"nested lists", endless{begin, "]"}, most},
		{"nested dicts", endless{begin, "}\x8c\x01a"}, most},
		{"pending values", endless{begin, "N"}, most},
		{"memoised strings", endless{begin, "\x8c\x01a\x940"}, most},
		{"memoised ints", endless{begin, "K\x01\x940"}, most},
		{"pairs", endless{begin, "K\x01K\x02\x860"}, most},
		{"strings of 60 kB", endless{begin, "X\x60\xea\x00\x00" + strings.Repeat("x", 60000) + "0"}, most},
		// These are what they seem, seven million blocks in ten bytes each.
		{"empty blocks", endless{begin, "}\x8c\x04sizeK\x01s"}, 12 * size},
	}
	if n, err := strconv.Atoi(os.Getenv(child)); err == nil {
		_, err := Decode("file", cases[n].e, size, Options{})
		_, _ = io.WriteString(os.Stdout, err.Error()) // a nil error fails the parent's test
		os.Exit(0)
	}
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestHostileFilesTakeLittleMemory$")
			cmd.Env = append(os.Environ(), child+"="+strconv.Itoa(i))
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			peak := snapshot.Bytes(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10)
			t.Logf("%s: %s", peak, out)
			if peak > c.most {
				t.Errorf("it took %s, more than %s: %s", peak, c.most, out)
			}
		})
	}
}
