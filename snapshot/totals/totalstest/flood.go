package totalstest

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/memdiag/memdiag/snapshot"
)

// Flood is a file that asks for more than one of its size may.
type Flood struct {
	Name   string
	Before string
	Piece  string // repeated, formatted with its number if it has a verb
	Count  int
	After  string
	Packed bool // compressed with zstd: an uncompressed file is longer, and so may use more
}

// What a flooding file is refused for.
const (
	TooMuchMemory = "its tables take more memory"
	TooManySteps  = "it asks for"
)

// Flooded fails a test unless each file is refused for what it asks.
func Flooded(t *testing.T, decode func([]byte) (*snapshot.Snapshot, error), want string, floods ...Flood) {
	for _, f := range floods {
		t.Run(f.Name, func(t *testing.T) {
			_, err := decode(f.file())
			Refused(t, err, want)
		})
	}
}

func (f *Flood) file() []byte {
	var b bytes.Buffer
	b.WriteString(f.Before)
	if verbs := strings.Count(f.Piece, "%"); verbs == 0 {
		b.WriteString(strings.Repeat(f.Piece, f.Count))
	} else {
		for i := range f.Count {
			fmt.Fprintf(&b, f.Piece, i)
		}
	}
	b.WriteString(f.After)
	if !f.Packed {
		return b.Bytes()
	}
	var packed bytes.Buffer
	w, err := zstd.NewWriter(&packed, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		panic(err)
	}
	_, _ = w.Write(b.Bytes()) // a buffer takes all
	_ = w.Close()
	return packed.Bytes()
}
