//go:build !race

// Reading is of one goroutine, and what is squeezed takes long under the race detector.

package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What the agent writes is read by memdiag later, and by whoever gets the folder.
func TestASnapshotThatNoAgentWroteIsRefusedInOneLine(t *testing.T) {
	squeezed := func(text string, times int) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write([]byte(`{"memdiag_agent":1,`)) // a buffer takes all
		for range times {
			_, _ = w.Write([]byte(text))
		}
		_ = w.Close()
		return b.Bytes()
	}
	for _, c := range []struct {
		name    string
		content []byte
	}{
		{"lists in lists", []byte(`{"memdiag_agent":1,"stacks":` + strings.Repeat("[", 1<<20))},
		{"80 MiB of spaces in 80 KiB", squeezed(strings.Repeat(" ", 1<<20), 80)},
		{"a string without an end", squeezed(`"producer":"`+strings.Repeat("x", 1<<20), 80)},
		{"a million devices with nothing in them", []byte(`{"memdiag_agent":1,"devices":[` + strings.Repeat("{},", 1<<20) + `{}],"blocks":{"device":[1048577],"size":[1]}}`)},
		{"numbers beyond 64 bits", []byte(`{"memdiag_agent":1,"step":99999999999999999999}`)},
		{"a frame of four", []byte(`{"memdiag_agent":1,"frames":[["f","a.py",3,{}]],"stacks":[[7]]}`)},
		{"an object for a list", []byte(`{"memdiag_agent":1,"blocks":[]}`)},
		{"half a file", []byte(`{"memdiag_agent":1,"devices":[{"kind":"cpu`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "snapshot_1.json")
			if err := os.WriteFile(path, c.content, 0o666); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{{"show", path}, {"diff", filepath.Dir(path)}} {
				var out, said bytes.Buffer
				if code := run(args, nil, &out, &said); code != exitBadInput || out.Len() > 0 || strings.Contains(said.String(), "goroutine") {
					t.Errorf("%s ended with %d: %s%s", args[0], code, &out, &said)
				}
				first, _, _ := strings.Cut(said.String(), "\n")
				if !strings.Contains(first, filepath.Dir(path)) || len(first) > 400 {
					t.Errorf("%s said %q", args[0], first)
				}
			}
		})
	}
}
