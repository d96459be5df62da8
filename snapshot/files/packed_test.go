package files

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/memdiag/memdiag/snapshot"
)

// heaptracks is a recording whose texts hardly shrink, of a loop of so many rounds that
// leaks a block.
func heaptracks(texts, rounds int) []byte {
	var b bytes.Buffer
	b.WriteString("v 10400 3\n")
	random := rand.New(rand.NewPCG(1, 2))
	for range texts {
		fmt.Fprintf(&b, "s 10 %016x\n", random.Uint64())
	}
	b.WriteString("i 1 1 1\nt 1 0\na 40 1\n+ 0\n")
	b.WriteString(strings.Repeat("+ 0\n- 0\n", rounds))
	return b.Bytes()
}

func packed(t *testing.T, how string, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	var w interface {
		Write([]byte) (int, error)
		Close() error
	} = z
	if how == "gzip" {
		w = gzip.NewWriter(&b)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// PyTorch's reader took each zstd file whose first 4 KiB give nothing for its own: a block
// has up to 128 KiB.
func TestFormatsAreToldBehindALongFirstBlock(t *testing.T) {
	recording := heaptracks(20_000, 1)
	for _, how := range []string{"gzip", "zstd"} {
		path := write(t, t.TempDir(), "recording", string(packed(t, how, recording)))
		if s, err := Open(path); err != nil || s.Producer != "heaptrack" {
			t.Errorf("%s: %v", how, err)
		}
	}
	torch, err := os.ReadFile(filepath.Join("..", "torch", "testdata", "big_lists.pickle"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(write(t, t.TempDir(), "torch", string(packed(t, "zstd", torch)))); err != nil {
		t.Error(err)
	}
}

// A loop's recording shrinks a thousandfold and more, which both bounds took for an attack.
func TestARecordingOfALoopIsRead(t *testing.T) {
	const rounds = 10_000_000
	recording := heaptracks(1, rounds)
	for _, how := range []string{"gzip", "zstd"} {
		b := packed(t, how, recording)
		s, err := Open(write(t, t.TempDir(), "loop", string(b)))
		if err != nil {
			t.Errorf("%s, %s in %s: %v", how, snapshot.Bytes(len(recording)), snapshot.Bytes(len(b)), err)
		} else if s.Blocks.Len() != 1 || s.History.Events != 2*rounds+1 {
			t.Errorf("%s: %d rows, %d events", how, s.Blocks.Len(), s.History.Events)
		}
	}
}
