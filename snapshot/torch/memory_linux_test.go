//go:build linux && !race

// Peak memory means nothing under the race detector, which shadows every byte.

package torch

import (
	"encoding/binary"
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
	for i := 0; i < len(p); {
		from := e.prefix
		if at >= int64(len(e.prefix)) {
			from = e.pattern[(at-int64(len(e.prefix)))%int64(len(e.pattern)):]
		} else {
			from = from[at:]
		}
		n := copy(p[i:], from)
		i += n
		at += int64(n)
	}
	return len(p), nil
}

// counted is an endless file whose repetitions differ: from hole on, each has its
// number in four bytes.
type counted struct {
	endless
	hole int
}

func (c counted) ReadAt(p []byte, at int64) (int, error) {
	n, err := c.endless.ReadAt(p, at)
	every, first := int64(len(c.pattern)), int64(len(c.prefix)+c.hole)
	for i := max(0, (at-first)/every); first+i*every < at+int64(n); i++ {
		var number [4]byte
		binary.LittleEndian.PutUint32(number[:], uint32(i))
		for j, b := range number {
			if k := first + i*every + int64(j) - at; k >= 0 && k < int64(n) {
				p[k] = b
			}
		}
	}
	return n, err
}

// child runs a test again as a process of its own, with a number in its
// environment, and returns what it prints and its peak memory: this process's
// own at least, which a child begins with.
func child(t *testing.T, test, variable string, n int) (string, snapshot.Bytes) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.timeout=2m")
	cmd.Env = append(os.Environ(), variable+"="+strconv.Itoa(n))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out), snapshot.Bytes(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10)
}

// TestHostileFilesTakeLittleMemory reads 64 MiB of what would fill memory, in
// processes of their own, whose peak (or this one's, if higher) is then known.
func TestHostileFilesTakeLittleMemory(t *testing.T) {
	const begin = "\x80\x04}(\x8c\x08segments](}(\x8c\x06blocks]("
	const variable = "MEMDIAG_TORCH_HOSTILE"
	const most, size = 200 << 20, 64 << 20
	const frames = "\x80\x04}(\x8c\x08segments]\x8c\x04name\x94\x8c\x01f\x94\x8c\x04line\x94N\x8c\x01xN}\x94(h\x00h\x01u0"
	const events = "\x80\x04}(\x8c\x08segments]\x8c\x06action\x94\x8c\x05alloc\x94\x8c\x04addr\x94\x8c\x04size\x94\x8c\x0ddevice_traces](]("
	const notes = "\x80\x04}(\x8c\x08segments]\x8c\x04name\x94\x8c\x05stage\x94\x8c\x03END\x94\x8c\x07time_us\x94\x8c\x14external_annotations]("
	cases := []struct {
		name string
		e    io.ReaderAt
		most snapshot.Bytes
	}{
		{"nested lists", endless{begin, "]"}, most},
		{"nested dicts", endless{begin, "}\x8c\x01a"}, most},
		{"pending values", endless{begin, "N"}, most},
		{"memoised strings", endless{begin, "\x8c\x01a\x940"}, most},
		{"memoised ints", endless{begin, "K\x01\x940"}, most},
		{"pairs", endless{begin, "K\x01K\x02\x860"}, most},
		{"strings of 60 kB", endless{begin, "X\x60\xea\x00\x00" + strings.Repeat("x", 60000) + "0"}, most},
		{"empty blocks", endless{begin, "}\x8c\x04sizeK\x01s"}, most + size},
		{"strings, no two equal", counted{endless{begin, "\x8c\x04----0"}, 2}, most + size},
		{"pairs, no two equal", counted{endless{begin, "J----K\x02\x860"}, 1}, most + size},
		{"frames, no two equal", counted{endless{frames, "}(h\x00h\x01h\x02J----u0"}, 9}, most + size},
		{"long stacks, no two equal", counted{endless{frames, "](}(h\x00h\x01h\x02J----u" + strings.Repeat("h\x03", 16000) + "e0"}, 11}, most + size},
		{"events at addresses far apart", counted{endless{events, "}(h\x00h\x01h\x02\x8a\x06\x00\x00----h\x03K\x01u"}, 12}, most + size},
		{"optimizers, no two equal", counted{endless{notes, "}(h\x00\x8c\x13Optimizer.step#----h\x01h\x02h\x03K\x01u"}, 21}, most + size},
	}
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		_, err := Decode("file", cases[n].e, size, Options{})
		_, _ = os.Stdout.WriteString(err.Error()) // a nil error fails the parent's test
		os.Exit(0)
	}
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			out, peak := child(t, "TestHostileFilesTakeLittleMemory", variable, i)
			t.Logf("%s: %s", peak, out)
			if peak > c.most {
				t.Errorf("it took %s, more than %s: %s", peak, c.most, out)
			}
		})
	}
}

// TestATraceOf2GBTakesLittleMemory reads traces of 14 million events in processes
// of their own.
func TestATraceOf2GBTakesLittleMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	const variable, size, most = "MEMDIAG_TORCH_LARGE", 2 << 30, 300 << 20
	names := []string{"tensors that come and go", "a third of the events allocates what stays live"}
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		prefix, pattern := largeTrace()
		var r io.ReaderAt = endless{prefix, pattern}
		if n == 1 {
			r = newKept(prefix, pattern)
		}
		_, err := Decode("file", r, size, Options{})
		_, _ = os.Stdout.WriteString(err.Error())
		os.Exit(0)
	}
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			out, peak := child(t, "TestATraceOf2GBTakesLittleMemory", variable, i)
			t.Logf("%s: %s", peak, out)
			// The pattern has no end: all of it was read when the file ends.
			if want := "byte 2147483648: the file ends"; !strings.Contains(out, want) {
				t.Errorf("got %s, want %s", out, want)
			}
			if peak > most {
				t.Errorf("it took %s, more than %s", peak, snapshot.Bytes(most))
			}
		})
	}
}

// kept is an endless trace in which every repetition allocates at addresses of its
// own, and frees those of the first: a third of all events opens a tenancy that
// stays open.
type kept struct {
	endless
	allocations []int // where in the pattern their addresses lie
}

func newKept(prefix, pattern string) kept {
	k := kept{endless: endless{prefix, pattern}}
	const begin = "\x8a\x06\x00" // of an address
	for i := 0; len(k.allocations) < perBatch; {
		i += strings.Index(pattern[i:], begin) + len(begin)
		k.allocations = append(k.allocations, i)
	}
	return k
}

func (k kept) ReadAt(p []byte, at int64) (int, error) {
	n, err := k.endless.ReadAt(p, at)
	size := int64(len(k.pattern))
	first := max(0, (at-int64(len(k.prefix)))/size)
	for repetition := first; ; repetition++ {
		begin := int64(len(k.prefix)) + repetition*size - at
		if begin >= int64(n) {
			return n, err
		}
		for i, place := range k.allocations {
			var address [8]byte
			binary.LittleEndian.PutUint64(address[:], uint64((repetition+1)*perBatch+int64(i))*8) // times 256
			for j, b := range address[:4] {
				if to := begin + int64(place+j); to >= 0 && to < int64(n) {
					p[to] = b
				}
			}
		}
	}
}

// perBatch is how many events of a batch allocate.
const perBatch = 333

// largeTrace makes the beginning of a pickle as CPython writes it, up to a
// trace's first batch, and a batch of a thousand events that can be repeated:
// it refers to nothing of its own.
func largeTrace() (prefix, pattern string) {
	var b strings.Builder
	memo := map[string]int{}
	count := 0
	memoise := func() int {
		b.WriteString("\x94")
		count++
		return count - 1
	}
	get := func(i int) {
		if i < 256 {
			b.Write([]byte{byte(opMemoGet1), byte(i)})
		} else {
			b.WriteByte(byte(opMemoGet4))
			b.Write(binary.LittleEndian.AppendUint32(nil, uint32(i)))
		}
	}
	text := func(s string) {
		if i, ok := memo[s]; ok {
			get(i)
			return
		}
		b.WriteString("\x8c" + string(rune(len(s))) + s)
		memo[s] = memoise()
	}
	frames := map[int]int{}
	event := func(action string, n int) {
		b.WriteString("}")
		memoise()
		b.WriteString("(")
		text("action")
		text(action)
		text("addr")
		b.WriteString("\x8a\x06" + string([]byte{0, byte(n * 8), byte(n >> 5), 0, 0, 0x7f}))
		text("size")
		b.WriteString("J\x00\x02\x00\x00")
		text("time_us")
		b.WriteString("\x8a\x07\xe8c[\xa0\x9d7\x06")
		text("frames")
		b.WriteString("]")
		memoise()
		b.WriteString("(")
		for i := range 30 {
			line := (n + i*i) % 400
			if at, ok := frames[line]; ok {
				get(at)
				continue
			}
			b.WriteString("}")
			frames[line] = memoise()
			b.WriteString("(")
			text("name")
			text("forward")
			text("filename")
			text("model.py")
			text("line")
			b.WriteString("M" + string([]byte{byte(line), byte(line >> 8)}) + "u")
		}
		b.WriteString("e")
		text("compile_context")
		text("N/A")
		b.WriteString("u")
	}
	b.WriteString("\x80\x04}")
	memoise()
	b.WriteString("(")
	text("segments")
	b.WriteString("]")
	memoise()
	text("device_traces")
	b.WriteString("]")
	memoise()
	b.WriteString("]")
	memoise()
	batch := func() {
		b.WriteString("(")
		for n := range perBatch {
			event("alloc", n)
		}
		for n := range perBatch {
			event("free_requested", n)
			event("free_completed", n)
		}
		b.WriteString("e")
	}
	batch()
	prefix = b.String()
	b.Reset()
	batch()
	return prefix, b.String()
}
