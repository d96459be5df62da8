package torch

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/memdiag/memdiag/snapshot"
)

// TestTensorsSayWhatToGiveInTheirPlace has what torch.save writes of a list of tensors, of a
// state and of a model.
func TestTensorsSayWhatToGiveInTheirPlace(t *testing.T) {
	const tensor = "ctorch._utils\n_rebuild_tensor_v2\n(tR"
	for _, c := range []struct{ name, file, want string }{
		{"a list of tensors", "\x80\x02](" + tensor + "e.", "as torch.save writes them"},
		{"a dict of tensors", "\x80\x02}(X\x01\x00\x00\x00w" + tensor + "u.", "as torch.save writes them"},
		{"a model", "\x80\x02ctorch.nn.modules.linear\nLinear\n)\x81.", "as torch.save writes them"},
		{"a list of numbers", "\x80\x02](K\x01e.", "memdiag reads what torch.cuda"},
	} {
		_, err := Decode(c.name, strings.NewReader(c.file), int64(len(c.file)), Options{})
		if f, ok := errors.AsType[*snapshot.FormatError](err); !ok || !strings.Contains(f.Hint, c.want) || !strings.Contains(f.Hint, "_dump_snapshot") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestHostileFilesAreRefusedInOneLine(t *testing.T) {
	// Every pickle begins a snapshot, so that it is the rest that is refused.
	const begin = "\x80\x04}(\x8c\x08segments]"
	marks := func(s string) string { return strings.Repeat(s, 1<<20) }
	for _, c := range []struct{ name, file, reason string }{
		{"REDUCE of posix.system is not run", begin + "\x8c\x01xcposix\nsystem\n\x8c\x02ls\x85Ru.", "byte 37: asks to call posix.system; memdiag does not run pickles"},
		{"STACK_GLOBAL of builtins.eval is not run", begin + "\x8c\x01x\x8c\x08builtins\x8c\x04eval\x93\x8c\x011\x85Ru.", "asks to call builtins.eval"},
		{"NEWOBJ of subprocess.Popen is not run", begin + "\x8c\x01xcsubprocess\nPopen\n)\x81u.", "asks to call subprocess.Popen"},
		{"NEWOBJ_EX of os.system is not run", begin + "\x8c\x01xcos\nsystem\n)}\x92u.", "asks to call os.system"},
		{"INST of nt.system is not run", begin + "\x8c\x01x(\x8c\x02lsint\nsystem\nu.", "asks to call nt.system"},
		{"OBJ of runpy is not run", begin + "\x8c\x01x(crunpy\nrun_path\n\x8c\x02lsou.", "asks to call runpy.run_path"},
		{"a file that ends in an instruction", begin + "\x8c\xffabc", "byte 20: the file ends in the middle of the snapshot"},
		{"a file that ends between instructions", begin, "the file ends in the middle"},
		{"a string of 2^63 bytes", begin + "\x8d\x00\x00\x00\x00\x00\x00\x00\x80", "a length of 9223372036854775808 bytes, but 0 are left"},
		{"a string of 4 GB", begin + "X\xff\xff\xff\xff", "a length of 4294967295 bytes, but 0 are left"},
		{"bytes of 4 GB", begin + "B\xff\xff\xff\xff", "a length of 4294967295 bytes, but 0 are left"},
		{"an int of 2 GB", begin + "\x8b\xff\xff\xff\x7f", "a length of 2147483647 bytes, but 0 are left"},
		{"an int of negative length", begin + "\x8b\xff\xff\xff\xff", "negative length"},
		{"a frame longer than the file", "\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\xff}.", "a frame of 18446744073709551615 bytes"},
		{"lists nested a million deep", begin + marks("]"), "containers are open"},
		{"dicts nested a million deep", begin + marks("}\x8c\x01a"), "containers are open"},
		{"marks nested a million deep", begin + marks("("), "marks nest deeper"},
		{"a stack that only grows", begin + strings.Repeat("NNNNNNNN", 1<<19), "values are pending"},
		{"frames of an open list", "\x80\x04}(\x8c\x04name\x8c\x01f\x86N}(\x8c\x04name\x8c\x01fu\x94](" + marks("h\x00h\x00h\x00h\x00h\x00e("), "open lists have more than"},
		{"segments without number", `{"segments":[` + strings.Repeat(`{"total_size":1},`, 200_000), "segments, which take more memory than a file of its size may ask for"},
		{"plain values to remember", begin + marks("K\x01\x94"), "plain values are memoised"},
		{"a memo entry far ahead", begin + "r\xff\xff\xff\x7f", "stored out of turn"},
		{"a memo entry stored again", begin + "q\x00\x8c\x01aq\x00", "stored out of turn"},
		{"a container memoised a million times", begin + marks("\x94"), "memoised twice"},
		{"a memo entry never stored", begin + "h\x07", "used before it is stored"},
		{"blocks of a segment that has ended", begin + "(}(\x8c\x0atotal_sizeK\x01u](}(\x8c\x04sizeK\x01\x8c\x05state\x8c\x08inactiveueueu.", "items are added to the list of segments"},
		{"a list that holds itself", "\x80\x04]\x94(h\x00e.", "the list of segments holds a reference"},
		{"frames that hold themselves", begin + "(}(\x8c\x06blocks](}(\x8c\x04sizeK\x01\x8c\x06frames]\x94(h\x00eueueu.", "the frames of a block refer to a reference"},
		{"a segment list read a second time", begin + "\x8c\x08segments]u.", "a second time the list of segments"},
		{"a segment inside a tuple", begin + "(}(\x8c\x0atotal_sizeK\x01u\x85eu.", "a segment lies in an unexpected place"},
		{"a block of 2^60 bytes", begin + "(}(\x8c\x06blocks](}(\x8c\x04size\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x10ueueu.", "a block of 1152921504606846976 bytes"},
		{"a block of -1 bytes", begin + "(}(\x8c\x06blocks](}(\x8c\x04sizeJ\xff\xff\xff\xffueueu.", "a block of -1 bytes"},
		{"blocks that add up to more than there is", begin + "(}(\x8c\x06blocks](" + strings.Repeat("}\x8c\x04size\x8a\x07\x00\x00\x00\x00\x00\x00\x04s", 1025) + "eueu.", "add up to more than 1048576 TiB"},
		{"a segment of 2^63 bytes", begin + "(}(\x8c\x0atotal_size\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00ueu.", "a segment of 9223372036854775808 bytes"},
		{"device two billion", begin + "(}(\x8c\x06deviceJ\xff\xff\xff\x7f\x8c\x0atotal_sizeK\x01ueu.", "device 2147483647 is out of range"},
		{"items for a dict that is a dict's", begin + "\x8c\x01x}K\x01au.", "items are added to a wrapper"},
		{"items for a dict that another follows", begin + "\x8c\x01x(}}au.", "items are added to a container passed already"},
		{"attributes for a dict", begin + "\x8c\x01x}}bu.", "attributes are given to a wrapper"},
		{"attributes for nothing", begin + "\x8c\x01x(}bu.", "an instruction finds no value to work on"},
		{"blocks thrown away after they were read", begin + "(}(\x8c\x06blocks](}\x8c\x04sizeK\x01s}\x8c\x04sizeK\x01sN1ueu.", "items do not go into their list; a dict that it may want is in its list already"},
		{"a block thrown away after another was read", begin + "(}(\x8c\x06blocks](}\x8c\x04sizeK\x01s}\x8c\x04sizeK\x01s00ueueu.", "lies in an unexpected place"},
		{"an instruction that does not exist", begin + "\xff", "byte 15: 0xff is not a pickle instruction"},
		{"a protocol of the future", "\x80\x04\x80\x06}.", "protocol 6 is not known"},
		{"the snapshot thrown away", "\x80\x04" + "}(00", "byte 5: the snapshot lies in an unexpected place"},
		{"a pickle of something else", "\x80\x04\x8c\x05hello.", "its top level is a string"},
		{"a dict of something else", "\x80\x04}\x8c\x01aK\x01s.", `neither "segments" nor "device_traces"`},
		{"a list of something else", "\x80\x04](}(\x8c\x01aK\x01ue.", "neither total_size nor blocks"},
		{"no pickle at all", "hello", "not a PyTorch memory snapshot"},
		{"an empty file", "", "not a PyTorch memory snapshot"},
		{"JSON nested a million deep", `{"segments":` + marks("["), "nests deeper"},
		{"JSON that ends early", `{"segments":[{"blocks":[`, "the file ends in the middle"},
		{"JSON with something after it", `{"segments":[]} x`, `'x' after the end of the snapshot`},
		{"a zip without a pickle", "PK\x03\x04data.pkl", "the zip archive is damaged"},
		{"a page without a pickle", "<!DOCTYPE html><script>const local_files = []</script>", "the page embeds no snapshot"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Decode("file.pickle", strings.NewReader(c.file), int64(len(c.file)), Options{})
			var refused *snapshot.FormatError
			if s != nil || !errors.As(err, &refused) {
				t.Fatalf("got %v, %v", s, err)
			}
			if text := err.Error(); !strings.HasPrefix(text, "file.pickle: byte ") || strings.Contains(text, "\n") || !strings.Contains(text, c.reason) {
				t.Errorf("got %q, want %q", text, c.reason)
			}
		})
	}
}

func TestWhatSharesAddressesIsSaid(t *testing.T) {
	const block, kib = `{"address":%d,"size":%d,"state":"inactive"}`, 1 << 10
	file := func(second, block2 int) string {
		return fmt.Sprintf(`{"segments":[{"address":4096,"total_size":8192,"blocks":[`+block+`,`+block+`]},{"address":%d,"total_size":1024,"blocks":[`+block+`]}]}`,
			4096, 4*kib, block2, 4*kib, second, second, kib)
	}
	for _, c := range []struct{ name, file, want string }{
		{"what lies end to end", file(12288, 8192), ""},
		{"blocks that overlap", file(12288, 8191), "in 1 of 2 segments blocks overlap: bytes are counted more than once"},
		{"blocks with a gap", file(12289, 8193), "in 1 of 2 segments the blocks are not contiguous"},
		{"a segment inside another", file(5000, 8192), "1 of 2 segments shares addresses with another: bytes are counted more than once"},
		{"segments without addresses", `{"segments":[{"total_size":1024,"blocks":[{"size":1024}]},{"total_size":1024,"blocks":[{"size":1024}]}]}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Decode("file", strings.NewReader(c.file), int64(len(c.file)), Options{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, n := range s.Notes {
				if strings.Contains(n, "more than once") || strings.Contains(n, "contiguous") {
					got = append(got, n)
				}
			}
			if strings.Join(got, "; ") != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestAForeignCallIsPassedOverAndSaid(t *testing.T) {
	s := decodeSeed(t, "foreign.pickle")
	want := []string{
		"1 object of torch.Size was passed over",
		"1 object of torch.torch_version.TorchVersion was passed over",
		"1 object of train.Config was passed over",
	}
	if got := s.Notes[len(s.Notes)-3:]; strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q", got)
	}
}

// TestACutFileIsAnError cuts a file of each kind at every byte.
func TestACutFileIsAnError(t *testing.T) {
	for _, name := range []string{"full_protocol0.pickle", "full_protocol4.pickle", "full_cpp.pickle", "full.json", "full.pickle.gz", "full.zip", "full.html"} {
		b := seed(t, name)
		end := len(b)
		if name == "full.html" { // what follows the pickle is not read
			end = bytes.LastIndex(b, []byte(`"}]`)) - 8
		}
		for n := range end {
			if s, err := Decode(name, bytes.NewReader(b[:n]), int64(n), Options{}); err == nil {
				t.Fatalf("%s: the first %d of %d bytes give %d blocks", name, n, len(b), s.Blocks.Len())
			}
		}
	}
}

func TestAFailingReadIsSaidWithItsCause(t *testing.T) {
	b := seed(t, "big_lists.pickle")
	r := struct{ io.ReaderAt }{failAfter{bytes.NewReader(b), 8 << 10}}
	_, err := Decode("file", r, int64(len(b)), Options{})
	if !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("got %v", err)
	}
}

type failAfter struct {
	r     io.ReaderAt
	after int64
}

func (f failAfter) ReadAt(p []byte, at int64) (int, error) {
	if at+int64(len(p)) > f.after {
		return 0, iotest.ErrTimeout
	}
	return f.r.ReadAt(p, at)
}

func TestABombIsNotInflated(t *testing.T) {
	text := "X\x00\x00\x10\x00" + strings.Repeat("a", 1<<20) + "0"
	bomb := packed(t, "\x80\x04}(", text, 160)
	_, err := Decode("bomb", bytes.NewReader(bomb), int64(len(bomb)), Options{})
	if err == nil || !strings.Contains(err.Error(), "decompresses to more than a file of its size may") {
		t.Errorf("%d bytes that inflate to %d: %v", len(bomb), 160*len(text), err)
	}
}

// packed is begin, and a piece again and again, by gzip.
func packed(t *testing.T, begin, piece string, times int) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(z, begin)
	for range times {
		if err == nil {
			_, err = io.WriteString(z, piece)
		}
	}
	if err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Of 10 MB by gzip, keys took 28 s, globals 8 s and, by zstd, spaces 8 s: only bytes were counted.
func TestStepsAreBoundedByTheSizeOfTheFile(t *testing.T) {
	const pickle = "\x80\x04}(\x8c\x08segments](}(\x8c\x06blocks]("
	for _, c := range []struct {
		name, begin, piece string
		megabytes          int
	}{
		{"globals", pickle, "cos\nsystem\n0", 64},
		{"scalars", pickle, "(" + strings.Repeat("N", 1<<10) + "1", 128},
		{"events", "\x80\x04}(\x8c\x0ddevice_traces](](", "}(u", 32},
		{"keys of JSON", `{"segments": []`, `,"a":1`, 64},
		{"lists of JSON", `{"segments": [], "a": [[]`, `,[]`, 16},
		{"dicts of JSON", `{"segments": [], "a": [{}`, `,{}`, 16},
		{"spaces of JSON", `{"segments": []`, " ", 128},
	} {
		t.Run(c.name, func(t *testing.T) {
			piece := strings.Repeat(c.piece, 1<<20/len(c.piece))
			b := packed(t, c.begin, piece, c.megabytes)
			_, err := Decode("f", bytes.NewReader(b), int64(len(b)), Options{})
			f, ok := errors.AsType[*snapshot.FormatError](err)
			if !ok || !strings.Contains(f.Reason, "more steps than a file of its size may") || f.Hint != liftHint {
				t.Errorf("%d bytes: %v", len(b), err)
			}
			if c.piece != " " { // the rest take seconds
				return
			}
			if _, err := Decode("f", bytes.NewReader(b), int64(len(b)), Options{MaxUnpacked: 1 << 30}); strings.Contains(fmt.Sprint(err), "steps") {
				t.Errorf("where a caller trusts it: %v", err)
			}
		})
	}
}

// TestEveryReaderErrorNamesTheFile reads a real path, as the command does.
func TestEveryReaderErrorNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot_3.pickle")
	if err := os.WriteFile(path, []byte("\x80\x04}("), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := decodeFile(t, path)
	if err == nil || !strings.HasPrefix(err.Error(), "snapshot_3.pickle: byte 4: ") {
		t.Errorf("got %v", err)
	}
}

func TestAPickleCutAtAnyByteIsSaidToBeCut(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "full_protocol4.pickle"))
	if err != nil {
		t.Fatal(err)
	}
	for n := 16; n < len(data); n += 97 { // below, it is no snapshot
		_, err := Decode("f", bytes.NewReader(data[:n]), int64(n), Options{})
		if f, ok := errors.AsType[*snapshot.FormatError](err); !ok || f.Hint != cutHint {
			t.Fatalf("of %d bytes: %v", n, err)
		}
	}
}

// A file of 10 MB took 886 MB and 15 s: it unpacked to a gigabyte of texts; each
// the pickle asks to remember.
func TestWhatIsRememberedIsBoundedByTheSizeOfTheFile(t *testing.T) {
	event := "}(" + strings.Repeat("\x8c\x01a\x94\x8c\x01a\x94", 16) + "u"
	b := packed(t, "\x80\x04}(\x8c\x0ddevice_traces](](", strings.Repeat(event, 1<<10), 300)
	_, err := Decode("f", bytes.NewReader(b), int64(len(b)), Options{})
	if !strings.Contains(fmt.Sprint(err), "entries to remember, more than a file of its size may") {
		t.Error(err)
	}
}

// TestTablesAreCharged adds to each table until a file of no size may have no more.
func TestTablesAreCharged(t *testing.T) {
	long := strings.Repeat("a", 10_000)
	frames := make([]uint32, 1000)
	annotation := func(m *machine, name string) {
		o := object{role: annotation}
		o.put(anStage, uint64(kwEnd))
		o.put(anName, uint64(m.symbols.intern([]byte(name))))
		o.put(anTime, 1)
		m.build.record.annotate(&o, m.symbols.strings)
	}
	for _, c := range []struct {
		name string
		cost int // bytes
		add  func(m *machine, i int)
	}{
		{"strings", symbolCost, func(m *machine, i int) { m.symbols.intern([]byte(strconv.Itoa(i))) }},
		{"long strings", len(long), func(m *machine, i int) { m.symbols.intern(strconv.AppendInt([]byte(long), int64(i), 10)) }},
		{"frames", symbolCost, func(m *machine, i int) { m.symbols.frame(rawFrame{line: int64(i)}) }},
		{"stacks", symbolCost, func(m *machine, i int) { m.symbols.list([]uint32{uint32(i)}) }},
		{"long stacks", refCost * len(frames), func(m *machine, i int) {
			frames[0] = uint32(i)
			m.symbols.list(frames)
		}},
		{"pairs", pairCost, func(m *machine, i int) { m.pair(uint64(i), 0) }},
		{"optimizers", nameCost, func(m *machine, i int) { annotation(m, "Optimizer.step#"+strconv.Itoa(i)) }},
		{"steps", timeCost, func(m *machine, _ int) { annotation(m, "Optimizer.step#a") }},
		{"steps of torch.profiler", timeCost, func(m *machine, _ int) { annotation(m, "ProfilerStep#1") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(newInput("f", strings.NewReader(""), 0))
			m.build.allow(0, 0)
			var err error
			n := 0
			for ; n < fewTables/c.cost+1 && err == nil; n++ {
				c.add(m, n)
				err = m.bounded()
			}
			if err == nil {
				t.Errorf("%d of %d bytes are allowed", n, c.cost)
			}
			if spent := m.symbols.spent + m.build.record.spent; m.build.record.spent > 0 {
				if m.build.weigh(); m.symbols.spent+m.build.record.spent < spent {
					t.Errorf("%d bytes, weighed %d", spent, m.symbols.spent+m.build.record.spent)
				}
			}
		})
	}
}

// A dict is complete when the next begins: it goes into its list, and a dict of a class was
// looked for where it would have been without that.
func TestDictsOfAClassAreBlocksToo(t *testing.T) {
	const dict = "ccollections\nOrderedDict\n)R("
	file := "\x80\x04}(\x8c\x08segments](}(\x8c\x06blocks](" + dict + "\x8c\x04sizeK\x01u" + dict + "\x8c\x04sizeK\x02u" + dict + "\x8c\x04sizeK\x03ueueu."
	s, err := Decode("ordered", strings.NewReader(file), int64(len(file)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(s.Blocks.Size), fmt.Sprint([]snapshot.Bytes{1, 2, 3}); got != want {
		t.Errorf("blocks of %s, want %s", got, want)
	}
}
