package main

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/pprof/profile"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// hostileName is what a terminal obeys or hides, what a page runs, and what divides
// calls, fields and lines in formats.
const hostileName = "<script>alert(1)</script>&amp;\x1b]0;owned\a\x1b[2J\u009b31m\u202egnp;|,'\"`\\\n::warning::owned"

// everyFormat are files of each format with the name of a function or a file in them, and how that
// name is written. Of several files each is later than the one before.
var everyFormat = []struct {
	name  string
	files []string // below the repository's root
	names []string // that are replaced
	write func(data []byte, old, hostile string) []byte
}{
	{"pprof of Go", []string{"testdata/profilers/go_10.pb.gz", "testdata/profilers/go_20.pb.gz", "testdata/profilers/go_30.pb.gz"}, []string{"main.remember", "leak"}, inProfile},
	{"pprof of JAX", []string{"testdata/profilers/jax_20.pb.gz", "testdata/profilers/jax_30.pb.gz", "testdata/profilers/jax_40.pb.gz"}, []string{"train", "leak_jax"}, inProfile},
	{"tracemalloc", []string{"testdata/profilers/tracemalloc_10.pickle", "testdata/profilers/tracemalloc_30.pickle", "testdata/profilers/tracemalloc_60.pickle"}, []string{"/tmp/tmp.GLz8D3cKhj/leak_python.py"}, inPickle},
	{"memray's table", []string{"testdata/profilers/memray_10.csv", "testdata/profilers/memray_30.csv"}, []string{"remember", "leak_python"}, inText("\n;|,\"")},
	{"memray's flamegraph", []string{"snapshot/memray/testdata/flamegraph.html.gz"}, []string{"remember", "leak_python"}, inMemrayPage},
	{"memray's flamegraph over time", []string{"snapshot/memray/testdata/temporal.html.gz"}, []string{"remember", "leak_python"}, inMemrayPage},
	{"memray's table as a page", []string{"snapshot/memray/testdata/table.html.gz"}, []string{"remember", "leak_python"}, inMemrayPage},
	{"heaptrack", []string{"testdata/profilers/heaptrack_10.zst", "testdata/profilers/heaptrack_30.zst"}, []string{"remember", "./leak.c"}, inHeaptrack},
	{"heaptrack_print", []string{"testdata/profilers/heaptrack_print_10.txt", "testdata/profilers/heaptrack_print_30.txt"}, []string{"remember", "leak.c"}, inText("\n")},
	{"massif", []string{"testdata/profilers/massif_10.out", "testdata/profilers/massif_30.out"}, []string{"remember", "leak.c"}, inText("\n")},
	{"DHAT", []string{"testdata/profilers/dhat_10.json", "testdata/profilers/dhat_30.json"}, []string{"remember", "leak.c"}, inJSON},
	{"jemalloc", []string{"testdata/profilers/jemalloc_10.heap", "testdata/profilers/jemalloc_30.heap"}, []string{"/leak"}, inText("\n")},
	{"torch.profiler", []string{"testdata/profilers/profiler_2.json.gz", "testdata/profilers/profiler_6.json.gz"}, []string{"): forward", "leak_torch"}, inJSON},
	{"PyTorch's pickle", []string{"snapshot/torch/testdata/empty.pickle", "snapshot/torch/testdata/full_protocol4.pickle"}, []string{"train_start", "train.py"}, inPickle},
	{"PyTorch's JSON", []string{"snapshot/torch/testdata/empty.pickle", "snapshot/torch/testdata/full.json"}, []string{"train_start", "train.py"}, inJSON},
	{"PyTorch's viewer", []string{"snapshot/torch/testdata/empty.pickle", "snapshot/torch/testdata/full.html"}, []string{"train_start", "train.py"}, inViewer},
	{"flat records", []string{"snapshot/torch/testdata/empty.pickle", "snapshot/torch/testdata/flat.json"}, []string{"train.py"}, inJSON},
}

// keptEnding is the hostile name in place of an old one, of which the folder and the ending stay:
// they tell which code is the user's.
func keptEnding(old, hostile string) string {
	folder, ending := old[:strings.LastIndexByte(old, '/')+1], filepath.Ext(old)
	if strings.HasPrefix(old, "main.") {
		folder, ending = "main.", ""
	}
	if rest, ok := strings.CutPrefix(old, "): "); ok && rest != "" {
		folder = "): "
	}
	return folder + hostile + ending
}

// inText writes a text without the characters that divide what is in it.
func inText(but string) func([]byte, string, string) []byte {
	return func(data []byte, old, hostile string) []byte {
		hostile = strings.Map(func(r rune) rune {
			if strings.ContainsRune(but, r) {
				return -1
			}
			return r
		}, hostile)
		return bytes.ReplaceAll(data, []byte(old), []byte(keptEnding(old, hostile)))
	}
}

func inJSON(data []byte, old, hostile string) []byte {
	return bytes.ReplaceAll(data, []byte(old), []byte(jsonText(keptEnding(old, hostile))))
}

func jsonText(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(text[1 : len(text)-1])
}

func inMemrayPage(data []byte, old, hostile string) []byte {
	return bytes.ReplaceAll(data, []byte(old), []byte(jsonText(html.EscapeString(keptEnding(old, hostile)))))
}

// inHeaptrack writes a text with its length before it.
func inHeaptrack(data []byte, old, hostile string) []byte {
	name := strings.ReplaceAll(keptEnding(old, hostile), "\n", "")
	was := fmt.Appendf(nil, "s %x %s\n", len(old), old)
	return bytes.ReplaceAll(data, was, fmt.Appendf(nil, "s %x %s\n", len(name), name))
}

// inPickle writes a short text with its length before it, and mends the length of the frame.
func inPickle(data []byte, old, hostile string) []byte {
	name := keptEnding(old, hostile)
	text := func(s string) []byte { return append([]byte{0x8c, byte(len(s))}, s...) }
	out := bytes.ReplaceAll(data, text(old), text(name))
	const frame = 2 + 1 + 8
	if len(data) > frame && data[2] == 0x95 {
		binary.LittleEndian.PutUint64(out[3:], binary.LittleEndian.Uint64(data[3:])+uint64(len(out)-len(data)))
	}
	return out
}

func inViewer(data []byte, old, hostile string) []byte {
	return regexp.MustCompile(`"base64": *"[^"]*"`).ReplaceAllFunc(data, func(m []byte) []byte {
		_, text, _ := bytes.Cut(m, []byte(`: "`))
		if text == nil {
			_, text, _ = bytes.Cut(m, []byte(`:"`))
		}
		inner, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(string(text), `"`))
		if err != nil {
			panic(err)
		}
		return []byte(`"base64":"` + base64.StdEncoding.EncodeToString(inPickle(inner, old, hostile)) + `"`)
	})
}

func inProfile(data []byte, old, hostile string) []byte {
	p, err := profile.ParseData(data)
	if err != nil {
		panic(err)
	}
	for _, f := range p.Function {
		if f.Name == old {
			f.Name = keptEnding(old, hostile)
		}
		f.Filename = strings.Replace(f.Filename, old+".", hostile+".", 1)
	}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// unpackedFile is a file's content without its compression.
func unpackedFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var r io.Reader
	switch {
	case bytes.HasPrefix(data, []byte("\x1f\x8b")):
		r, err = gzip.NewReader(bytes.NewReader(data))
	case bytes.HasPrefix(data, []byte("\x28\xb5\x2f\xfd")):
		r, err = zstd.NewReader(bytes.NewReader(data))
	default:
		return data
	}
	if err == nil {
		data, err = io.ReadAll(r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestNamesOfEveryFormatReachNoTerminalAndNoPageAsTheyAre has files of each format with hostile
// names drawn and written in every way.
func TestNamesOfEveryFormatReachNoTerminalAndNoPageAsTheyAre(t *testing.T) {
	t.Parallel()
	for _, c := range everyFormat {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir() + "/<script>alert(2) \x1b[31m\u202e;\n"
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			var files []string
			for i, file := range c.files {
				data := unpackedFile(t, filepath.Join("..", "..", file))
				for _, old := range c.names {
					data = c.write(data, old, hostileName)
				}
				path := filepath.Join(dir, fmt.Sprintf("snapshot_%d", 10*i+10))
				if err := os.WriteFile(path, data, 0o600); err != nil {
					t.Fatal(err)
				}
				files = append(files, path)
			}
			last := files[len(files)-1]
			results := t.TempDir()
			out := func(name string) string { return filepath.Join(results, name) }
			ways := [][]string{
				{"show", last}, {"show", "--format", "json", last}, {"flame", last, "-o", out("one.svg")},
				{"report", last, "-o", out("one.html")}, {"convert", last, "-o", out("one.json")},
				{"convert", last, "-o", out("one.pb.gz")}, {"convert", last, "-o", out("one.folded")},
				{"convert", last, "-o", out("own.memdiag")}, {"show", out("own.memdiag")}, {"show", out("one.pb.gz")},
			}
			for _, files := range [][]string{files, {files[0], last}} {
				if files[0] == last {
					continue
				}
				for _, format := range []string{"text", "json", "csv", "md"} {
					ways = append(ways, append([]string{"diff", "--all", "--format", format}, files...))
				}
				for _, command := range [][]string{{"flame", "-o", out("grown.svg")}, {"flame", "-o", out("grown.folded")}, {"flame", "-o", out("grown.pb.gz")}, {"report", "-o", out("grown.html")}, {"plot", "-o", out("plot.svg")}} {
					ways = append(ways, append(command, files...))
				}
			}
			if len(files) > 2 {
				ways = append(ways, append([]string{"gate", "--annotations", "github", "--json", out("gate.json"), "--junit", out("gate.xml"), "--sarif", out("gate.sarif"), "--markdown", out("gate.md"), "--codequality", out("quality.json")}, files...))
			}
			for _, args := range ways {
				var stdout, stderr bytes.Buffer
				if code := run(args, nil, &stdout, &stderr); code > exitLeak && code != exitInconclusive {
					t.Fatalf("%s: exit code %d: %s", args, code, &stderr)
				}
				checkPrinted(t, args[0], stderr.Bytes())
				checkPrinted(t, strings.Join(args[:min(4, len(args))], " "), stdout.Bytes())
				if bare := args[0] == "show"; bare && !strings.Contains(stdout.String(), "alert(1)") {
					t.Errorf("%s shows no hostile name:\n%s", args, &stdout)
				}
			}
			written, err := filepath.Glob(out("*"))
			if err != nil || len(written) < 5 {
				t.Fatalf("%d files, %v", len(written), err)
			}
			for _, file := range written {
				checkWritten(t, file)
			}
		})
	}
}

// checkPrinted is for what a terminal gets.
func checkPrinted(t *testing.T, what string, text []byte) {
	t.Helper()
	if bytes.Contains(text, []byte("\n::warning::owned")) {
		t.Errorf("%s has a line of the file's", what)
	}
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRune(text[at:])
		if r != '\n' && r != '\u00a0' && !strconv.IsPrint(r) || r == utf8.RuneError {
			t.Fatalf("%s has %q in %q", what, text[at:at+size], text[max(0, at-40):min(len(text), at+40)])
		}
		at += size
	}
}

// checkWritten is for a file, by its ending.
func checkWritten(t *testing.T, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Base(file)
	switch filepath.Ext(file) {
	case ".memdiag":
		return
	case ".gz":
		p, err := profile.ParseData(data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, f := range p.Function {
			checkPrinted(t, name, []byte(f.Name+f.SystemName+f.Filename))
		}
		return
	case ".html", ".svg":
		if bytes.Contains(data, []byte("<script>alert")) {
			t.Errorf("%s has a script of the file's", name)
		}
	case ".folded":
		for line := range strings.Lines(string(data)) {
			if !regexp.MustCompile(`^[^;\s][^\n]*( \d+){1,2}\n$`).MatchString(line) {
				t.Errorf("%s: %q", name, line)
			}
		}
	case ".json", ".sarif":
		if !json.Valid(data) {
			t.Errorf("%s is no JSON", name)
		}
	case ".xml":
		for d := xml.NewDecoder(bytes.NewReader(data)); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	case ".csv":
		if _, err := csv.NewReader(bytes.NewReader(data)).ReadAll(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	checkPrinted(t, name, bytes.ReplaceAll(data, []byte("\t"), nil)) // which sources are written with
}
