package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/memdiag/memdiag/record"
)

// mostWheel is how many bytes a wheel may have.
const mostWheel = 15_000_000

// metadata describes the wheels and the source distribution; the version comes in, and which Python a wheel needs.
const metadata = `Metadata-Version: 2.2
Name: memdiag
Version: %s
Summary: Find memory leaks of training runs: which line leaks, how fast, and who holds it
License: Apache-2.0
Keywords: memory,leak,pytorch,jax,profiler,gpu
Project-URL: Source, https://github.com/memdiag/memdiag
Classifier: Environment :: Console
Classifier: Framework :: Pytest
Classifier: License :: OSI Approved :: Apache Software License
Classifier: Operating System :: MacOS
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Go
Classifier: Programming Language :: Python :: 3
Classifier: Topic :: Software Development :: Debuggers
Classifier: Typing :: Typed
%sDescription-Content-Type: text/markdown

memdiag finds memory leaks of training runs: which line leaks, how fast, who holds it, and when
memory runs out. The code needs no change:

    memdiag record -o my-run -- python train.py
    memdiag diff my-run

    memdiag demo                 # lets memdiag catch a leak of its own
    memdiag gate -- python train.py --steps 200    # in CI: fails if the run leaks
`

// entryPoints has the plugin under the name by which pytest -p loads it, so that both are one.
const entryPoints = `[pytest11]
memdiag.pytest = memdiag.pytest
`

// wheel packs the binary as the command memdiag, and the Python package that the same tree has.
func (b *binary) wheel() (name string, content []byte, err error) {
	version, err := pythonVersion(b.version)
	if err != nil {
		return "", nil, err
	}
	program, err := os.ReadFile(b.path)
	if err != nil {
		return "", nil, err
	}
	info, data := "memdiag-"+version+".dist-info/", "memdiag-"+version+".data/"
	w := newWheelWriter(b.time)
	if err := w.folder(record.PythonPackage(), "memdiag/"); err != nil {
		return "", nil, err
	}
	w.add(data+"scripts/memdiag", 0o755, program)
	w.add(info+"METADATA", 0o644, fmt.Appendf(nil, metadata, version, "Requires-Python: >=3.10\n"))
	tags := ""
	for platform := range strings.SplitSeq(b.wheelTag, ".") {
		tags += "Tag: py3-none-" + platform + "\n"
	}
	w.add(info+"WHEEL", 0o644, []byte("Wheel-Version: 1.0\nGenerator: memdiag release\nRoot-Is-Purelib: false\n"+tags))
	w.add(info+"entry_points.txt", 0o644, []byte(entryPoints))
	for _, path := range []string{"LICENSE", "cmd/memdiag/NOTICE"} {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", nil, err
		}
		w.add(info+"licenses/"+path[strings.LastIndexByte(path, '/')+1:], 0o644, text)
	}
	content, err = w.finish(info + "RECORD")
	if err == nil && len(content) > mostWheel {
		err = fmt.Errorf("the wheel has %d bytes, and may have %d", len(content), mostWheel)
	}
	return fmt.Sprintf("memdiag-%s-py3-none-%s.whl", version, b.wheelTag), content, err
}

// wheelWriter writes a zip file and the list of what is in it.
type wheelWriter struct {
	buffer bytes.Buffer
	zip    *zip.Writer
	time   time.Time
	record strings.Builder
	err    error // the first
}

func newWheelWriter(at time.Time) *wheelWriter {
	w := &wheelWriter{time: at}
	w.zip = zip.NewWriter(&w.buffer)
	w.zip.RegisterCompressor(zip.Deflate, func(out io.Writer) (io.WriteCloser, error) { return flate.NewWriter(out, flate.BestCompression) })
	return w
}

func (w *wheelWriter) folder(files fs.FS, prefix string) error {
	return fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, path)
		w.add(prefix+path, 0o644, text)
		return err
	})
}

func (w *wheelWriter) add(name string, mode fs.FileMode, content []byte) {
	sum := sha256.Sum256(content)
	fmt.Fprintf(&w.record, "%s,sha256=%s,%d\n", name, base64.RawURLEncoding.EncodeToString(sum[:]), len(content))
	w.put(name, mode, content)
}

func (w *wheelWriter) put(name string, mode fs.FileMode, content []byte) {
	if w.err != nil {
		return
	}
	header := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: w.time}
	header.SetMode(mode)
	file, err := w.zip.CreateHeader(header)
	if err == nil {
		_, err = file.Write(content)
	}
	w.err = err
}

// finish adds the list itself, without a sum of its own, and returns the file.
func (w *wheelWriter) finish(list string) ([]byte, error) {
	w.put(list, 0o644, []byte(w.record.String()+list+",,\n"))
	if w.err == nil {
		w.err = w.zip.Close()
	}
	return w.buffer.Bytes(), w.err
}
