//go:build linux && !race

// Peak memory and time mean nothing under the race detector.

package files

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/memdiag/memdiag/snapshot"
)

// bomb is a small file that unpacks to a beginning and a pattern again and again; or,
// where there is something to wrap noise in, one of 10 MB, that may ask for more.
type bomb struct {
	name, begin, pattern string
	before, after        string
}

func bombs() []bomb {
	const (
		profile = "\x0a\x04\x08\x01\x10\x02\x32\x00\x32\x0binuse_space\x32\x05bytes\x22\x02\x08\x01"
		trace   = `{"schemaVersion": 1, "deviceProperties": [], "traceEvents": [`
		event   = `{"ph":"i","name":"[memory]","pid":1,"tid":1,"ts":1,"args":{"Addr":1,"Bytes":64}},`
		table   = "allocator,num_allocations,size,tid,thread_name,stack_trace\n"
		page    = "<title>memray - flamegraph report\npacked_data = {\"nodes\":{"
		massif  = "desc: x\ncmd: y\ntime_unit: i\n#-----------\nsnapshot=0\n#-----------\ntime=0\nmem_heap_B=0\nmem_heap_extra_B=0\nmem_stacks_B=0\n"
		heap    = "heap_v2/1\n  t*: 1: 1 [0: 0]\n"
		dump    = "\x80\x04\x8c\x0btracemalloc\x94\x8c\x08Snapshot\x94\x93\x94]"
		dhat    = `{"dhatFileVersion":2,"mode":"heap","bklt":true,`
		printed = "reading file \"a\" - please wait, this might take some time...\nDebuggee command was: a\nfinished reading file, now analyzing data:\n\nMEMORY LEAKS\n"
		pickle  = "\x80\x04}(\x8c\x08segments](}(\x8c\x06blocks]("
	)
	var deep strings.Builder // a stack of 16,000, and allocations below it
	deep.WriteString("v 10400 3\ns 1 a\ni 1 1 1 1 1\n")
	for i := range 16_000 {
		fmt.Fprintf(&deep, "t 1 %x\n", i)
	}
	for i := range 100_000 {
		fmt.Fprintf(&deep, "a 1 %x\n+ %x\n", 15_000+i%900, i)
	}
	return []bomb{
		{"pprof: samples", profile, "\x12\x06\x0a\x01\x01\x12\x01\x05", "", ""},
		{"pprof: empty strings", profile, "\x32\x00", "", ""},
		{"pprof: fields of no meaning", profile, "\x68\x01", "", ""},
		{"kineto: empty events", trace, "{},", "", ""},
		{"kineto: memory events", trace, event, "", ""},
		{"kineto: a string without end", trace + `{"name":"`, "a", "", ""},
		{"memray: rows", table, "1,1,1,1,a,f;x.py;1\n", "", ""},
		{"memray: quoted names", table, "1,1,1,1,\"a\",\"f;x.py;1\"\n", "", ""},
		{"memray: empty lines", table, "\n", "", ""},
		{"memray: nodes of a page", page + `"value":[`, "0,", "", ""},
		{"memray: nodes without children", page + `"children":[`, "[],", "", ""},
		{"memray: rows of a page", "<title>memray - table report\npacked_data = [", "{},", "", ""},
		{"memray: intervals of a page over time", "<title>memray - temporal flamegraph report\npacked_data = {\"intervals\":[", "[1,null,0,1,1],", "", ""},
		{"memray: peaks of a page over time", "<title>memray - temporal flamegraph report\npacked_data = {\"high_water_mark_by_snapshot\":[", "1,", "", ""},
		{"heaptrack_print: leaks", printed, "1B leaked over 1 calls from\na\n1B leaked over 1 calls from:\n\n", "", ""},
		{"heaptrack_print: callers", printed + "1B leaked over 1 calls from\na\n1B leaked over 1 calls from:\n", "    f\n", "", ""},
		{"heaptrack_print: empty lines", printed, "\n", "", ""},
		{"dhat: sites", dhat + `"pps":[`, `{"eb":1,"ebk":1,"fs":[1]},`, "", ""},
		{"dhat: frames of a site", dhat + `"pps":[{"fs":[`, "1,", "", ""},
		{"dhat: empty places", dhat + `"ftbl":[`, `"",`, "", ""},
		{"heaptrack: allocations", "v 10400 3\n", "a 1 0\n", "", ""},
		{"heaptrack: allocations in a file of 10 MB", "v 10400 3\n", "a 1 0\n", "# ", "\n"},
		{"heaptrack: addresses in a file of 10 MB", "v 10400 3\n", "i 1 1\n", "# ", "\n"},
		{"pprof: empty strings in a file of 10 MB", profile, "\x32\x00", "\x32\xe8\x07", ""},
		{"tracemalloc: what is remembered in a file of 10 MB", dump, "N\x94a", "X\xe8\x03\x00\x00", "a"},
		{"heaptrack: deep stacks", deep.String(), "", "", ""},
		{"massif: empty lines", massif, "\n", "", ""},
		{"massif: a tree without end", massif + "heap_tree=peak\nn9999999: 999999999 (heap\n", " n0: 1 0x1: f (a.c:1)\n", "", ""},
		{"jemalloc: empty lines", heap, "\n", "", ""},
		{"jemalloc: mapped files", heap + "\nMAPPED_LIBRARIES:\n", "1-2 r 0 0 0 /a\n", "", ""},
		{"tracemalloc: traces", dump, "K\x00K\x01)\x87a", "", ""},
		{"torch: blocks", pickle, "}\x8c\x04sizeK\x01s", "", ""},
		{"torch: strings", pickle, "\x8c\x01a\x940", "", ""},
		{"torch: segments in JSON", `{"segments": [`, `{"total_size":1},`, "", ""},
		{"torch: blocks in JSON", `{"segments": [{"total_size":1,"blocks":[`, `{"size":1},`, "", ""},
	}
}

// write makes the file piece by piece: what this process takes by then counts as its
// child's.
func (b bomb) write(t *testing.T, path string) {
	t.Helper()
	const unpacked = 100 << 20
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewWriterLevel(file, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(z, b.begin)
	random := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 1000)
	for n := 0; n < 10_000 && b.before != "" && err == nil; n++ {
		for i := range noise {
			noise[i] = 0x80 | byte(random.Uint32()) // no line feed
		}
		_, err = io.WriteString(z, b.before+string(noise)+b.after)
	}
	piece := []byte(strings.Repeat(b.pattern, 1<<20/max(1, len(b.pattern))))
	for n := 0; n < unpacked && len(b.pattern) > 0 && err == nil; n += len(piece) {
		_, err = z.Write(piece)
	}
	if err := errors.Join(err, z.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
}

// openInChild opens a file in a process of its own, whose time and peak memory are then
// known, and returns what came of it, after the file's name.
func openInChild(t *testing.T, path string) (said string, took time.Duration, peak snapshot.Bytes) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestBombsEndSoon$", "-test.timeout=2m")
	cmd.Env = append(os.Environ(), childsFile+"="+path)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	said = strings.TrimPrefix(string(out), path)
	took = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	peak = snapshot.Bytes(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10)
	t.Logf("%.2f s, %s: %s", took.Seconds(), peak, said)
	return said, took, peak
}

const (
	childsFile = "MEMDIAG_BOMB" // names the file in the child's environment
	isRead     = "it is read"
	// What a file may take beyond its own size.
	mostMemory = 200 << 20
)

// TestBombsEndSoon opens small files that ask for much. Each takes a second on a machine
// of our own; the bound leaves room for slower ones.
func TestBombsEndSoon(t *testing.T) {
	const mostTime = 3 * time.Second
	if path := os.Getenv(childsFile); path != "" {
		_, err := Open(path)
		if err == nil {
			err = errors.New(isRead)
		}
		_, _ = os.Stdout.WriteString(err.Error())
		os.Exit(0)
	}
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	path := filepath.Join(t.TempDir(), "bomb.gz")
	for _, b := range bombs() {
		t.Run(b.name, func(t *testing.T) {
			b.write(t, path)
			said, took, peak := openInChild(t, path)
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if took > mostTime || peak > mostMemory+snapshot.Bytes(info.Size()) {
				t.Errorf("it took %.2f s and %s", took.Seconds(), peak)
			}
			if !strings.Contains(said, ": byte ") {
				t.Errorf("no error of the file: %s", said)
			}
		})
	}
}
