package record

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/cespare/xxhash/v2"
)

// mostExecutable is the size of the largest program that is hashed; reading it takes about a second.
const mostExecutable = 2 << 30

// executable is a digest of the program that was run, in the form that snapshot.Code has for files: one function without a name. It is
// nil if the program cannot be read or was modified after it started.
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
