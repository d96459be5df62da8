package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
)

// refusal is the backend (PEP 517) of the source distribution. pip takes that if no wheel fits, as
// on Windows, or if it is too old to know the wheels' names, and shows what this says.
const refusal = `import sys

sys.exit("""
memdiag has no wheel for this machine, or this pip is too old to find it.
It has wheels for Linux and macOS 12, on x86-64 and arm64, with Python 3.10 or later.
On Linux and macOS: python -m pip install --upgrade pip
On Windows memdiag does not run; it runs in WSL.
""")
`

// source packs a source distribution from which nothing can be built, and which says why.
func (b *binary) source() (name string, content []byte, err error) {
	version, err := pythonVersion(b.version)
	if err != nil {
		return "", nil, err
	}
	var buffer bytes.Buffer
	zipped := gzip.NewWriter(&buffer)
	w := tar.NewWriter(zipped)
	for _, file := range []struct{ name, text string }{
		{"PKG-INFO", fmt.Sprintf(metadata, version)},
		{"pyproject.toml", "[build-system]\nrequires = []\nbuild-backend = \"refusal\"\nbackend-path = [\".\"]\n"},
		{"refusal.py", refusal},
	} {
		header := &tar.Header{Name: "memdiag-" + version + "/" + file.name, Mode: 0o644, Size: int64(len(file.text)), ModTime: b.time, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(header); err != nil {
			return "", nil, err
		}
		if _, err := w.Write([]byte(file.text)); err != nil {
			return "", nil, err
		}
	}
	if err := w.Close(); err != nil {
		return "", nil, err
	}
	err = zipped.Close()
	return "memdiag-" + version + ".tar.gz", buffer.Bytes(), err
}
