package files

import (
	"bytes"
	"fmt"
	"io"
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

// Readers that stop at the end of a value did not see a checksum that is wrong, and told other
// figures than the file was written with.
func TestAWrongChecksumIsAnError(t *testing.T) {
	files := map[string]string{"agent": `{"memdiag_agent": 1, "producer": "Python", "step": 1, "rank": null, "phase": "", "time_us": 1, "devices": [], "frames": [], "stacks": [[]], ` +
		`"blocks": {"device": [], "address": [], "size": [], "stack": [], "birth": []}, "holders": [], "notes": []}`}
	profiles, torch := filepath.Join("..", "..", "testdata", "profilers"), filepath.Join("..", "torch", "testdata")
	for _, path := range []string{
		filepath.Join(profiles, "tracemalloc_30.pickle"), filepath.Join(profiles, "dhat_30.json"), filepath.Join(profiles, "profiler_2.json.gz"),
		filepath.Join(profiles, "memray_30.csv"), filepath.Join(torch, "full_protocol4.pickle"), filepath.Join(torch, "full.json"),
	} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if z, err := gzip.NewReader(bytes.NewReader(data)); err == nil {
			if data, err = io.ReadAll(z); err != nil {
				t.Fatal(err)
			}
		}
		files[path] = string(data)
	}
	for path, data := range files {
		for how, checksum := range map[string]int{"gzip": 8, "zstd": 4} { // bytes before the end
			b := packed(t, how, []byte(data))
			if _, err := Open(write(t, t.TempDir(), "whole", string(b))); err != nil {
				t.Errorf("%s by %s: %v", path, how, err)
			}
			b[len(b)-checksum] ^= 1
			if _, err := Open(write(t, t.TempDir(), "wrong", string(b))); err == nil {
				t.Errorf("%s by %s is read with a wrong checksum", path, how)
			}
		}
	}
}
