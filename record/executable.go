package record

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/cespare/xxhash/v2"
)

// mostExecutable is how large a program may be of which a digest is made: a second's reading.
const mostExecutable = 2 << 30

// executable is a digest of the program that was run, as snapshot.Code has those of files: one function without a name. It is
// nil of what cannot be read, or was written since it was started.
func executable(path string, started time.Time) map[string]string {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > mostExecutable || info.ModTime().After(started) {
		return nil
	}
	digest := xxhash.New()
	if _, err := io.Copy(digest, f); err != nil {
		return nil
	}
	return map[string]string{path: fmt.Sprintf(":0:%x:", digest.Sum64())}
}
