//go:build linux && !race

// Peak memory and time mean nothing under the race detector.

package files

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/native"
)

// large is a file of so many MB, not compressed: a beginning, and pieces one after the
// other, each of its own kind.
type large struct {
	name  string
	mb    int
	begin string
	piece func(i int) string
	end   string
	says  string // in the error; isRead where there is none
}

func largeFiles() []large {
	const (
		trace  = `{"schemaVersion": 1, "deviceProperties": [], "traceEvents": [`
		table  = "allocator,num_allocations,size,tid,thread_name,stack_trace\n"
		blocks = `{"segments": [{"total_size":1,"blocks":[`
	)
	long := strings.Repeat("x", 1_000_000)
	return []large{
		{"a trace of memory events at addresses of their own", 28, trace, func(i int) string {
			return fmt.Sprintf(`{"name":"[memory]","ts":1,"args":{"Addr":%d,"Bytes":1}},`, i)
		}, "{}]}", isRead},
		{"a trace of calls of their own", 28, trace, func(i int) string {
			return fmt.Sprintf(`{"ph":"X","cat":"cpu_op","name":"%x","ts":1,"dur":9},`, i)
		}, "{}]}", "the trace has no memory events"},
		{"a trace of devices of their own", 28, trace, func(i int) string {
			return fmt.Sprintf(`{"name":"[memory]","args":{"Bytes":1,"Device Id":%d}},`, i)
		}, "{}]}", "more than 1024 devices"},
		{"a trace of blocks below thousands of calls", 28, trace, func(i int) string {
			if i%20 == 0 {
				return fmt.Sprintf(`{"ph":"X","cat":"cpu_op","name":"%x","ts":%d,"dur":99999999},`, i, i)
			}
			return fmt.Sprintf(`{"name":"[memory]","ts":%d,"args":{"Addr":%d,"Bytes":1}},`, i, i)
		}, "{}]}", "its tables take more memory"},
		{"a trace of blocks below a call of a long name", 3, trace + `{"ph":"X","cat":"cpu_op","name":"` + long + `","ts":0,"dur":99999999},`, func(i int) string {
			return fmt.Sprintf(`{"ph":"X","cat":"cpu_op","name":"%x","ts":%d,"dur":1},{"name":"[memory]","ts":%d.5,"args":{"Addr":%d,"Bytes":1}},`, i, i+1, i+1, i)
		}, "{}]}", isRead},
		{"heaptrack's stacks below a function of a long name", 3, "v 10400 3\ns f4240 " + long + "\ni 1 1 1\n", func(i int) string {
			return fmt.Sprintf("i %x 1 1\nt %x 0\na 1 %x\n+ %x\n", i+2, i+2, i+1, i)
		}, "", isRead},
		{"PyTorch's segments", 51, `{"segments": [`, func(int) string { return `{"total_size":1},` }, `{"total_size":1}]}`, "segments, which take more memory"},
		{"PyTorch's pools of their own", 25, `{"segments": [`, func(i int) string {
			return fmt.Sprintf(`{"total_size":1,"segment_pool_id":[1,%d]},`, i)
		}, `{"total_size":1}]}`, "segments, which take more memory"},
		{"PyTorch's blocks with stacks of their own", 25, blocks, func(i int) string {
			return fmt.Sprintf(`{"size":1,"state":"active_allocated","frames":[{"name":"f","line":%d}]},`, i)
		}, `{"size":1}]}]}`, isRead},
		{"PyTorch's stacks of a long name", 3, "\x80\x04}(\x8c\x01x](\x8c\x04size\x94\x8c\x06frames\x94\x8c\x05state\x94\x8c\x10active_allocated\x94\x8c\x04name\x94X\x60\xea\x00\x00" +
			long[:60_000] + "\x94\x8c\x04line\x94e\x8c\x08segments](}(\x8c\x06blocks](", func(i int) string {
			frame := func(line int) string {
				return "}(h\x04h\x05h\x06J" + string(binary.LittleEndian.AppendUint32(nil, uint32(line))) + "u"
			}
			return "}(h\x00K\x01h\x02h\x03h\x01](" + frame(i) + frame(i+1) + "eu"
		}, "eueu.", isRead},
		{"PyTorch's events at addresses of their own", 32, `{"segments": [], "device_traces": [[`, func(i int) string {
			return fmt.Sprintf(`{"action":"alloc","addr":%d,"size":1},`, i*40000)
		}, "{}]]}", isRead},
		{"devices of memdiag's agent", 28, `{"memdiag_agent":1,"devices":[`, func(int) string { return "{}," }, "{}]}", "its tables take more memory"},
		{"notes of memdiag's agent", 28, `{"memdiag_agent":1,"notes":[`, func(int) string { return `"",` }, `""]}`, "its tables take more memory"},
		{"memray's rows of functions of their own", 32, table, func(i int) string { return fmt.Sprintf("1,1,1,1,a,f%x;x.py;1\n", i) }, "", "its tables take more memory"},
	}
}

func (l large) write(t *testing.T, path string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(file)
	n, _ := w.WriteString(l.begin) // errors stay, and come from Flush
	for i := 0; n < l.mb<<20; i++ {
		piece, _ := w.WriteString(l.piece(i))
		n += piece
	}
	_, _ = w.WriteString(l.end)
	if err := errors.Join(w.Flush(), file.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestLargeFilesTakeNoMoreThanTheirSize opens large files that were made to take memory
// and time. The bound on time leaves room for machines slower than ours, on which none
// takes three seconds.
func TestLargeFilesTakeNoMoreThanTheirSize(t *testing.T) {
	const mostTime = 9 * time.Second
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	path := filepath.Join(t.TempDir(), "large")
	for _, l := range largeFiles() {
		t.Run(l.name, func(t *testing.T) {
			l.write(t, path)
			said, took, peak := openInChild(t, path)
			if took > mostTime || peak > mostMemory+snapshot.Bytes(l.mb<<20) {
				t.Errorf("it took %.2f s and %s", took.Seconds(), peak)
			}
			if !strings.Contains(said, l.says) {
				t.Errorf("got %q, want %q", said, l.says)
			}
		})
	}
}

// writeMany writes a snapshot of three million blocks as memdiag does.
func writeMany(path string) error {
	const n = 3_000_000
	s := &snapshot.Snapshot{
		Mark: snapshot.Mark{Step: n}, Rank: snapshot.NoRank, Stacks: snapshot.NewStacks(),
		Devices:  []snapshot.Device{{Kind: snapshot.CUDA, Limit: snapshot.Unknown}},
		Segments: []snapshot.Segment{{Size: n << 20, NumBlocks: n}},
	}
	b := &s.Blocks
	b.Segment, b.Owners = make([]int32, n), make([]snapshot.Owners, n)
	at := uint64(0)
	for i := range n {
		size := snapshot.Bytes(512 * (1 + i*i%999))
		b.Address, b.Size, b.Requested = append(b.Address, at), append(b.Size, size), append(b.Requested, size-snapshot.Bytes(i%512))
		at += uint64(size)
		b.State = append(b.State, snapshot.Live)
		b.Stack = append(b.Stack, s.Stacks.InternFrames([]snapshot.Frame{{Function: "f", File: "train.py", Line: i % 1000}}))
		b.BirthStep, b.BirthTime = append(b.BirthStep, int64(i)), append(b.BirthTime, int64(i)*1000)
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(native.Encode(file, s), file.Close())
}

// TestOurLargeSnapshotsAreReadWithinTheSameBounds opens one that memdiag itself writes. A
// child writes it: what a process takes, Linux counts as taken by its children too.
func TestOurLargeSnapshotsAreReadWithinTheSameBounds(t *testing.T) {
	const writersFile = "MEMDIAG_LARGE"
	if path := os.Getenv(writersFile); path != "" {
		if err := writeMany(path); err != nil {
			t.Fatal(err)
		}
		return
	}
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	path := filepath.Join(t.TempDir(), "snapshot.memdiag")
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.timeout=2m")
	cmd.Env = append(os.Environ(), writersFile+"="+path)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	said, _, peak := openInChild(t, path)
	if peak > mostMemory+snapshot.Bytes(info.Size()) || said != isRead {
		t.Errorf("a file of %s took %s: %s", snapshot.Bytes(info.Size()), peak, said)
	}
}
