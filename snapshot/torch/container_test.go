package torch

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/memdiag/memdiag/snapshot"
)

func compressed(t *testing.T, b []byte, open func(io.Writer) io.WriteCloser) []byte {
	t.Helper()
	var out bytes.Buffer
	w := open(&out)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func gzipped(t *testing.T, b []byte) []byte {
	return compressed(t, b, func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) })
}

func zstandard(t *testing.T, b []byte) []byte {
	return compressed(t, b, func(w io.Writer) io.WriteCloser {
		z, err := zstd.NewWriter(w)
		if err != nil {
			t.Fatal(err)
		}
		return z
	})
}

func TestCompressedFilesSayWhatIsInThem(t *testing.T) {
	for _, name := range []string{"full_protocol4.pickle", "full_protocol0.pickle", "full.json", "full.html", "big_lists.pickle"} {
		want := describe(decodeSeed(t, name))
		for wrapping, b := range map[string][]byte{"gzip": gzipped(t, seed(t, name)), "zstd": zstandard(t, seed(t, name))} {
			if !Detect(b[:min(len(b), DetectLen)]) {
				t.Errorf("%s in %s is not detected", name, wrapping)
			}
			s, err := Decode(name, bytes.NewReader(b), int64(len(b)), Options{})
			if err != nil {
				t.Errorf("%s in %s: %v", name, wrapping, err)
				continue
			}
			if got := describe(s); got != want {
				t.Errorf("%s in %s: %s", name, wrapping, firstDifference(got, want))
			}
		}
	}
}

func TestCompressedFilesThatAreCutSaySo(t *testing.T) {
	whole := seed(t, "big_lists.pickle")
	for wrapping, b := range map[string][]byte{"gzip": gzipped(t, whole)} {
		b = b[:len(b)/2]
		_, err := Decode("cut", bytes.NewReader(b), int64(len(b)), Options{})
		if f, ok := errors.AsType[*snapshot.FormatError](err); !ok || !strings.Contains(f.Reason, "ends in the middle of the snapshot") || f.Hint == "" {
			t.Errorf("%s: %v", wrapping, err)
		}
	}
}

func TestDetectLooksAtContentOnly(t *testing.T) {
	for _, c := range []struct {
		name string
		head []byte
		want bool
	}{
		{"a pickle of protocol 4", []byte("\x80\x04\x95"), true},
		{"a pickle of protocol 0", []byte("(dp0\nVsegments\n"), true},
		{"a pickle of protocol 1", []byte("}q\x00(X\x08\x00\x00\x00segments"), true},
		{"JSON with a key of a snapshot", []byte(`  {"device_traces": [`), true},
		{"JSON of flat records", []byte(`[{"device": 0, "address": 1, "total_size": 2`), true},
		{"a zip of torch.save", seed(t, "full.zip"), true},
		{"the viewer's page", seed(t, "full.html"), true},
		{"nothing", nil, false},
		{"JSON of something else", []byte(`{"leak": "none", "steps": 20}`), false},
		{"another zip", []byte("PK\x03\x04\x14\x00\x00\x00word/document.xml"), false},
		{"a page of something else", []byte("<!DOCTYPE html><p>hello"), false},
		{"gzip of something else, as pprof is", gzipped(t, []byte("\x0a\x04\x08\x01\x10\x02")), false},
		{"zstd of something else", zstandard(t, []byte("hello")), false},
		{"gzip of gzip", gzipped(t, gzipped(t, seed(t, "full.json"))), false},
		{"text", []byte("hello\n"), false},
		{"a PNG", []byte("\x89PNG\r\n\x1a\n"), false},
		{"a protocol of the future", []byte("\x80\x06\x95"), false},
	} {
		if got := Detect(c.head[:min(len(c.head), DetectLen)]); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestFlatRecordsBecomeBlocks(t *testing.T) {
	want := `events 0 lost 0 from 0 to 0 steps 0
segment 0 40000000+2097152 stream 0 small "" false [{ train.py 7} { model.py 3}]
 40000000+1048576 (1048576) live born 0 in -1: [{ train.py 7} { model.py 3}]
 40100000+512 (512) pending born 0 in -1: [{ train.py 7} { model.py 3}]
 40100200+1048064 (0) free born 0 in -1: []
segment 0 80000000+20971520 stream 0 large "" false []
 80000000+20971520 (0) free born 0 in -1: []
device 0: [1048576 1048576 1049088 23068672]
`
	if got := describe(decodeSeed(t, "flat.json")); got != want {
		t.Error(firstDifference(got, want))
	}
}

func TestTheAgentsHeaderAndStepsAreRead(t *testing.T) {
	s := decodeSeed(t, "agent.pickle")
	if s.Mark.Step != 40 || s.Rank != 3 || len(s.Devices) != 1 || s.Devices[0].Kind != "cpu" {
		t.Errorf("step %d, rank %d, devices %v", s.Mark.Step, s.Rank, s.Devices)
	}
	if got := s.Blocks.BirthStep; len(got) != 2 || got[0] != 12 || got[1] != -1 {
		t.Errorf("born in %v", got)
	}
}

func TestFilesOfTwoSnapshots(t *testing.T) {
	page := string(seed(t, "full.html"))
	embedded := strings.Replace(page, `"}]`, `"}, {"name": "b", "base64": "gAR9lC4="}]`, 1)
	if embedded == page {
		t.Fatal("the page's list does not end as it did")
	}
	s, err := Decode("page", strings.NewReader(embedded), int64(len(embedded)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	one := decodeSeed(t, "full.html")
	if got := s.Notes[len(s.Notes)-1]; got != "the page embeds more than one snapshot; this is the first" || len(s.Notes) != len(one.Notes)+1 {
		t.Errorf("notes %q", s.Notes)
	}
	if got, want := describe(s), describe(one); got != want {
		t.Error(firstDifference(got, want))
	}
	var two bytes.Buffer
	z := zip.NewWriter(&two)
	for _, name := range []string{"a/data.pkl", "b/data.pkl"} {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(seed(t, "full_protocol2.pickle")); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Decode("zip", bytes.NewReader(two.Bytes()), int64(two.Len()), Options{}); err == nil || !strings.Contains(err.Error(), `two snapshots, "a/data.pkl" and "b/data.pkl"`) {
		t.Errorf("an archive of two: %v", err)
	}
}

func TestWhatFollowsASnapshotIsSaid(t *testing.T) {
	plain := seed(t, "full_protocol2.pickle")
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := z.Write(plain)
	if err = errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(packed.Bytes())
	damaged[len(damaged)-6] ^= 1
	for _, c := range []struct {
		name string
		data []byte
		want string // in the last note, or in the error; "" for no note more
	}{
		{"nothing", plain, ""},
		{"nothing, compressed", packed.Bytes(), ""},
		{"something else", append(bytes.Clone(plain), "x"...), fmt.Sprintf("the file does not end where the snapshot does, at byte %s; what follows was not read", grouped(len(plain)))},
		{"another snapshot", append(bytes.Clone(plain), plain...), "another snapshot follows at byte"},
		{"a checksum that is cut", packed.Bytes()[:packed.Len()-3], "the file ends in the middle of the snapshot"},
		{"a checksum that is wrong", damaged, "invalid checksum"},
		{"the end of the first half", packed.Bytes()[:packed.Len()/2], "the file ends in the middle of the snapshot"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Decode("file", bytes.NewReader(c.data), int64(len(c.data)), Options{})
			if err != nil {
				if c.want == "" || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "file: byte ") {
					t.Errorf("got %v, want %q", err, c.want)
				}
				return
			}
			notes := strings.Join(s.Notes, "\n")
			if c.want == "" && (strings.Contains(notes, "the file does not end") || strings.Contains(notes, "follows")) || !strings.Contains(notes, c.want) {
				t.Errorf("notes %q, want %q", s.Notes, c.want)
			}
		})
	}
}

func TestAnArchiveOfManyEntriesIsRefused(t *testing.T) {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	name := "archive/data.pkl"
	for range mostContents >> 7 {
		if _, err := z.CreateHeader(&zip.FileHeader{Name: name}); err != nil {
			t.Fatal(err)
		}
		name = strings.Repeat("x", 100)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := Decode("file", bytes.NewReader(out.Bytes()), int64(out.Len()), Options{})
	if err == nil || !strings.Contains(err.Error(), "its table of contents is longer than 4.00 MiB") {
		t.Errorf("got %v", err)
	}
}
