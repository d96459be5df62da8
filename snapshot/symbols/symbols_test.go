package symbols_test

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/jemalloc"
	"github.com/memdiag/memdiag/snapshot/symbols"
	"github.com/memdiag/memdiag/snapshot/totals"
)

const leak = "../../testdata/profilers/leak.c"

// built compiles a program.
func built(t testing.TB, source, name string, flags ...string) string {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("no gcc here")
	}
	path := filepath.Join(t.TempDir(), name)
	build := exec.Command(gcc, append(flags, "-o", path, source)...)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// offsetOf is where in the file a function begins.
func offsetOf(t *testing.T, path, function string) uint64 {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	list, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list {
		if s.Name == function {
			for _, p := range f.Progs {
				if p.Type == elf.PT_LOAD && p.Vaddr <= s.Value && s.Value < p.Vaddr+p.Filesz {
					return s.Value - p.Vaddr + p.Off
				}
			}
		}
	}
	t.Fatalf("%s has no %s", path, function)
	return 0
}

func TestAddressesOfAHeapProfileAreNamed(t *testing.T) {
	path := built(t, leak, "leak", "-g", "-O1")
	offset := offsetOf(t, path, "remember")
	profile := fmt.Sprintf("heap_v2/1\n  t*: 1: 100 [0: 0]\n@ %#x 0x7f0000000001\n  t*: 1: 100 [0: 0]\n\nMAPPED_LIBRARIES:\n%x-%x r-xp 00000000 00:00 1    %s\n7f0000000000-7f0000001000 r-xp 00000000 00:00 2    /lib/libc.so.6\n",
		0x550000000000+offset+1, 0x550000000000, 0x550000100000, "/elsewhere/leak")
	for _, c := range []struct {
		table *symbols.Table
		inner string
		notes int
	}{
		{nil, fmt.Sprintf("leak+%#x", offset), 1},
		{&symbols.Table{}, "remember", 0},
	} {
		if c.table != nil {
			if err := c.table.Add(path); err != nil {
				t.Fatal(err)
			}
		}
		s, err := jemalloc.Decode("f", bytes.NewReader([]byte(profile)), int64(len(profile)), totals.Options{Symbols: c.table})
		if err != nil {
			t.Fatal(err)
		}
		frames := s.Stacks.Frames(s.Sites()[0].Stack)
		if len(frames) != 2 || frames[0].Function != c.inner || frames[1].Function != "libc.so.6+0x0" || len(s.Notes) != c.notes {
			t.Errorf("%+v, notes %q", frames, s.Notes)
		}
		if c.table != nil && (filepath.Base(frames[0].File) != "leak.c" || frames[0].Line < 9 || frames[0].Line > 11) {
			t.Errorf("%+v", frames[0])
		}
	}
}

func TestABinaryWithoutLinesHasFunctions(t *testing.T) {
	path := built(t, leak, "leak", "-O1")
	var table symbols.Table
	if err := table.Add(path); err != nil {
		t.Fatal(err)
	}
	offset := offsetOf(t, path, "train")
	if f := table.Frames("/x/leak", offset+4); len(f) != 1 || f[0] != (snapshot.Frame{Function: "train", File: "/x/leak", Line: -1}) {
		t.Errorf("%+v", f)
	}
	for _, file := range []string{"/x/other", "/x/leak"} {
		if f := table.Frames(file, 1<<40); f != nil {
			t.Errorf("%s: %+v", file, f)
		}
	}
}

func TestWhatHasNoSymbolsIsRefused(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no binary"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{text: "not an ELF binary", text + "absent": "no such file", built(t, leak, "leak", "-s", "-static-pie"): "it has no symbols"} {
		var table symbols.Table
		if err := table.Add(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestAFunctionWithinAnotherHasItsOwnFrame: the compiler puts small ones where they are called.
func TestAFunctionWithinAnotherHasItsOwnFrame(t *testing.T) {
	source := filepath.Join(t.TempDir(), "within.c")
	text := "#include <stdlib.h>\nvoid *kept;\nstatic inline __attribute__((always_inline)) void inner(int n) {\n  kept = malloc(n);\n}\n" +
		"static inline __attribute__((always_inline)) void middle(int n) {\n  inner(n + 1);\n}\n" +
		"__attribute__((noinline)) void outer(int n) {\n  middle(n);\n  kept = realloc(kept, 2);\n}\nint main(int c, char **v) { outer(c); return 0; }\n"
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	program := built(t, source, "within", "-g", "-O2")
	var table symbols.Table
	if err := table.Add(program); err != nil {
		t.Fatal(err)
	}
	begin, seen := offsetOf(t, program, "outer"), map[string]bool{}
	for offset := begin; offset < begin+60; offset++ {
		var calls []string
		for _, f := range table.Frames(program, offset) {
			calls = append(calls, fmt.Sprintf("%s:%d", f.Function, f.Line))
		}
		seen[strings.Join(calls, " ")] = true
	}
	if !seen["inner:4 middle:7 outer:10"] || !seen["outer:11"] {
		t.Errorf("%v", seen)
	}
}

// FuzzABinary changes a real one.
func FuzzABinary(f *testing.F) {
	whole, err := os.ReadFile(built(f, leak, "leak", "-g", "-O2", "-nostdlib", "-shared", "-fPIC"))
	if err != nil {
		f.Fatal(err)
	}
	for at := range 40 {
		f.Add(uint32(at*len(whole)/40), byte(1<<(at%8)), uint32(0x1000+at*8), uint32(len(whole)))
	}
	f.Fuzz(func(t *testing.T, at uint32, flip byte, offset, length uint32) {
		text := bytes.Clone(whole[:min(int(length), len(whole))])
		if len(text) > 0 {
			text[int(at)%len(text)] ^= flip
		}
		path := filepath.Join(t.TempDir(), "b")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		var table symbols.Table
		if table.Add(path) == nil {
			for i := range uint64(16) {
				table.Frames("b", uint64(offset)+4*i)
			}
		}
	})
}
