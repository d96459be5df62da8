package torch

import (
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/memdiag/memdiag/snapshot"
)

// DetectLen is how many bytes of a file's beginning Detect needs to be sure: the first
// block of zstd has up to 128 KiB, and gives nothing until it is whole.
const DetectLen = 132 << 10

// headLen is how many uncompressed bytes are needed to detect a format.
const headLen = 4096

// Detect reports whether a file that begins with head may be a snapshot that
// Decode reads. It looks at content only; any pickle may be one.
func Detect(head []byte) bool { return sniff(head, true) != unknown }

type format int

const (
	unknown format = iota
	pickleFormat
	jsonFormat
	zipFormat
	gzipFormat
	zstdFormat
	pageFormat
)

var (
	// oldPickle is how protocols 0 and 1, which have no signature, begin a
	// dict or list that is memoised.
	oldPickle = regexp.MustCompile(`^(\([dl]p[0-9]+\n|[\]}]q.)`)
	// jsonKey is any key by which a snapshot in JSON can be known.
	jsonKey = regexp.MustCompile(`(?s)^\s*[\[{].*"(segments|device_traces|external_annotations|allocator_settings|total_size|segment_type|segment_pool_id)"\s*:`)
	page    = regexp.MustCompile(`(?is)^\s*<(!doctype|html|script).*local_files`)
)

func sniff(head []byte, outer bool) format {
	whole := head
	head = head[:min(len(head), headLen)]
	switch {
	case len(head) >= 2 && head[0] == byte(opProto) && head[1] >= 2 && head[1] <= 5, oldPickle.Match(head):
		return pickleFormat
	case jsonKey.Match(head), string(bytes.TrimSpace(head)) == "[]":
		return jsonFormat
	case !outer:
	case bytes.HasPrefix(head, []byte("PK\x03\x04")) && bytes.Contains(head, []byte("data.pkl")):
		return zipFormat
	case bytes.HasPrefix(head, []byte("\x1f\x8b")) && insideOf(gzipFormat, whole):
		return gzipFormat
	case bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")) && insideOf(zstdFormat, whole):
		return zstdFormat
	case page.Match(head):
		return pageFormat
	}
	return unknown
}

// oldSave is the beginning of a file of torch.save without a zip: pickles of a number and of a version, and a third that describes the
// machine, without a STOP in its texts.
const oldSave = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.\x80\x02}"

// oldSaveLen is what of such a file comes before the pickle; 0 for other files.
func oldSaveLen(head []byte) int64 {
	if !bytes.HasPrefix(head, []byte(oldSave)) {
		return 0
	}
	return int64(len(oldSave) + bytes.IndexByte(head[len(oldSave):], byte(opStop)) + 1)
}

// insideOf reports whether a compressed file's first bytes are a snapshot's:
// other formats are compressed too.
func insideOf(f format, head []byte) bool {
	r, closer, err := decompressor(f, bytes.NewReader(head))
	if err != nil {
		return false
	}
	defer closer()
	inner := make([]byte, headLen)
	n, _ := io.ReadFull(r, inner) // the head is cut, so an error is usual
	return sniff(inner[:n], false) != unknown || page.Match(inner[:n])
}

// text is a pickle or JSON text, out of whatever wraps it.
type text struct {
	in    *input
	json  bool
	close func()
	more  func() bool // whether another follows in the same file; nil for no
}

func open(name string, r io.ReaderAt, size, unpacked int64) (*text, error) {
	bound := func(json bool) int64 { return cmp.Or(unpacked, expansion(size, json)) }
	whole := io.NewSectionReader(r, 0, size)
	head, f := []byte(nil), unknown
	for _, n := range [...]int64{headLen, DetectLen} { // most need no more than the first
		head = make([]byte, min(size, n))
		if _, err := r.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
			return nil, &snapshot.FormatError{File: name, Reason: err.Error(), Err: err}
		}
		if f = sniff(head, true); f != unknown {
			break
		}
	}
	switch f {
	case pickleFormat, jsonFormat:
		if begin := oldSaveLen(head); begin > 0 {
			in := newInput(name, io.NewSectionReader(r, begin, size-begin), size-begin)
			more := func() bool { return false } // tensors follow; a snapshot has none
			return &text{in: in, close: func() {}, more: more}, nil
		}
		return &text{in: newInput(name, whole, size), json: f == jsonFormat, close: func() {}}, nil
	case gzipFormat, zstdFormat:
		inner, closer, err := decompressor(f, whole)
		if err != nil {
			return nil, &snapshot.FormatError{File: name, Reason: err.Error(), Err: err}
		}
		b := bufio.NewReaderSize(inner, headLen)
		if head, _ := b.Peek(headLen); page.Match(head) {
			return openPage(name, &limited{r: b, left: bound(false)}, bound, closer)
		}
		return unwrap(name, b, bound, closer)
	case zipFormat:
		return openArchive(name, r, size, bound)
	case pageFormat:
		return openPage(name, whole, bound, func() {})
	}
	return nil, notASnapshot(name)
}

func notASnapshot(name string) error {
	return &snapshot.FormatError{
		File: name, Reason: "this is not a PyTorch memory snapshot",
		Hint: "memdiag reads what torch.cuda.memory._dump_snapshot() writes, and the same as JSON",
	}
}

// unwrap detects the format of a stream whose beginning is not known yet, and bounds its length accordingly.
func unwrap(name string, r io.Reader, bound func(json bool) int64, closer func()) (*text, error) {
	within := &limited{r: r, left: headLen}
	b := bufio.NewReaderSize(within, headLen)
	head, err := b.Peek(headLen)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		closer()
		return nil, &snapshot.FormatError{File: name, Reason: err.Error(), Err: err}
	}
	f := sniff(head, false)
	if f == unknown {
		closer()
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, &snapshot.FormatError{File: name, Offset: int64(len(head)), Reason: cutReason, Hint: cutHint}
		}
		return nil, notASnapshot(name)
	}
	within.left += bound(f == jsonFormat) - headLen
	return &text{in: newInput(name, b, -1), json: f == jsonFormat, close: closer}, nil
}

// maxWindow is the memory that a zstd file may ask for; level 19 asks for 8 MiB.
const maxWindow = 64 << 20

func decompressor(f format, r io.Reader) (io.Reader, func(), error) {
	if f == gzipFormat {
		z, err := gzip.NewReader(r)
		return z, func() {}, err
	}
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, nil, err
	}
	return z, z.Close, nil
}

// expansion is what size compressed bytes may become: real pickles shrink up to fiftyfold,
// the same as JSON, which repeats each stack, by zstd -9 477-fold.
func expansion(size int64, json bool) int64 {
	if json {
		return 256<<20 + 512*min(size, 1<<50)
	}
	return 64<<20 + 100*min(size, 1<<50)
}

// stepsFor is how many steps a compressed file may cause: pickles of each protocol took up to 16 per byte with gzip -6, and JSON of a
// loop of one operator, a million events with zstd -9, 42.
func stepsFor(size int64, json bool) int64 {
	pace := int64(16)
	if json {
		pace = 40
	}
	return pace * min(size, 1<<50)
}

// limited ends a stream with an error when it grows beyond belief.
type limited struct {
	r    io.Reader
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errTooLarge
	}
	n, err := l.r.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}

var errTooLarge = errors.New("it decompresses to more than a file of its size may")

// mostContents bounds an archive's table of contents, in bytes. A snapshot's has five entries; package zip holds all in memory.
const mostContents = 4 << 20

// frugal is a file of which only a limited number of bytes may be read.
type frugal struct {
	r    io.ReaderAt
	left int64
}

// ReadAt implements io.ReaderAt.
func (f *frugal) ReadAt(p []byte, at int64) (int, error) {
	if f.left -= int64(len(p)); f.left < 0 {
		return 0, fmt.Errorf("its table of contents is longer than %s", snapshot.Bytes(mostContents))
	}
	return f.r.ReadAt(p, at)
}

// openArchive finds the pickle in what torch.save wrote.
func openArchive(name string, r io.ReaderAt, size int64, bound func(json bool) int64) (*text, error) {
	contents := &frugal{r: r, left: mostContents}
	z, err := zip.NewReader(contents, size)
	if err != nil {
		return nil, &snapshot.FormatError{File: name, Reason: fmt.Sprintf("the zip archive is damaged: %v", err), Err: err}
	}
	var found *zip.File
	for _, f := range z.File {
		if f.Name != "data.pkl" && !strings.HasSuffix(f.Name, "/data.pkl") {
			continue
		}
		if found != nil {
			return nil, &snapshot.FormatError{File: name, Reason: fmt.Sprintf("the archive has two snapshots, %.80q and %.80q", found.Name, f.Name), Hint: "write them to files of their own"}
		}
		found = f
	}
	if found == nil {
		return nil, &snapshot.FormatError{File: name, Reason: "the archive has no data.pkl", Hint: "memdiag reads archives that torch.save wrote"}
	}
	contents.left = math.MaxInt64
	inner, err := found.Open()
	if err != nil {
		return nil, &snapshot.FormatError{File: name, Reason: fmt.Sprintf("%.80q in the archive: %v", found.Name, err), Err: err}
	}
	return unwrap(name, inner, bound, func() { _ = inner.Close() })
}

var embedKey = []byte(`"base64":`)

// openPage opens the first file that the viewer's page embeds.
func openPage(name string, r io.Reader, bound func(json bool) int64, closer func()) (*text, error) {
	embedded, err := findEmbedded(name, r)
	if err != nil {
		closer()
		return nil, err
	}
	t, err := unwrap(name, base64.NewDecoder(base64.StdEncoding, embedded), bound, closer)
	if err == nil {
		t.more = embedded.more
	}
	return t, err
}

// findEmbedded finds that file.
func findEmbedded(name string, r io.Reader) (*quoted, error) {
	const head = 1 << 20
	b := bufio.NewReaderSize(r, head)
	seen, _ := b.Peek(head)
	at := bytes.Index(seen, embedKey)
	if at < 0 {
		return nil, &snapshot.FormatError{File: name, Reason: "the page embeds no snapshot", Hint: "give memdiag the snapshot that the page was made from"}
	}
	at += len(embedKey)
	at += len(seen[at:]) - len(bytes.TrimLeft(seen[at:], " \t\r\n"))
	if at >= len(seen) || seen[at] != '"' {
		return nil, &snapshot.FormatError{File: name, Offset: int64(at), Reason: "the page's snapshot is not a string"}
	}
	if _, err := b.Discard(at + 1); err != nil {
		return nil, &snapshot.FormatError{File: name, Offset: int64(at), Reason: err.Error(), Err: err}
	}
	return &quoted{b}, nil
}

// more reports whether the page embeds another file after this one.
func (q *quoted) more() bool {
	if _, err := io.Copy(io.Discard, q); err != nil { // padding, after the snapshot's end
		return false
	}
	const near = 4 << 10 // the name of the next comes before it
	rest, _ := q.r.Peek(near)
	return bytes.Contains(rest, embedKey)
}

// quoted reads up to a quotation mark.
type quoted struct{ r *bufio.Reader }

func (q *quoted) Read(p []byte) (int, error) {
	if _, err := q.r.Peek(1); err != nil {
		return 0, err
	}
	seen, _ := q.r.Peek(min(len(p), q.r.Buffered()))
	if end := bytes.IndexByte(seen, '"'); end >= 0 {
		seen = seen[:end]
	}
	if len(seen) == 0 {
		return 0, io.EOF
	}
	n := copy(p, seen)
	_, err := q.r.Discard(n)
	return n, err
}
