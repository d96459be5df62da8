package files_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/files"
)

func footer(n int) string { return fmt.Sprintf("\nmemdiag agent %016d\n", n) }

// What the recorder saw of the process stands in the file of PyTorch's snapshot of its GPUs.
func TestAGPUsSnapshotHasTheRestOfTheProcess(t *testing.T) {
	const beside = `{"memdiag_agent":1,"time_us":1700000000000000,"devices":[{"kind":"python","name":"Python heap"}],"frames":[["f","a.py",3]],"stacks":[[],[0]],` +
		`"blocks":{"device":[0],"address":[0],"size":[70],"stack":[1],"birth":[-1]},"holders":[{"stack":0,"address":65536,"path":"kept","kind":"list","items":3}]}`
	for name, c := range map[string]struct {
		beside  string
		devices int
		fails   string
	}{
		"with it": {beside + footer(len(beside)), 2, ""}, "long": {beside + strings.Repeat(" ", 1<<20) + footer(len(beside)+1<<20), 2, ""},
		"its text cut": {beside[:90] + footer(90), 0, "in the middle"}, "the file cut": {beside[:90], 0, "after the end"}, "all of it gone": {"", 0, "in the middle"},
		"a footer that lies": {beside + footer(1<<40), 0, "after the end"},
	} {
		path := filepath.Join(t.TempDir(), "snapshot_1.json")
		text := `{"segments":[{"device":0,"address":65536,"total_size":512,"stream":0,"segment_type":"small","blocks":[{"address":65536,"size":512,` +
			`"requested_size":500,"state":"active_allocated","frames":[{"name":"g","filename":"m.py","line":2}]}]}],"device_traces":[],"memdiag":{"agent":1,"step":1}}` + c.beside
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := files.Open(path)
		if c.fails != "" {
			if err == nil || !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%s: %v, want %q", name, err, c.fails)
			}
			continue
		}
		if err != nil || len(s.Devices) != c.devices || (len(s.Holders) == 1) != (c.beside != "") {
			t.Fatalf("%s: %v, %+v", name, err, s)
		}
		for _, h := range s.Holders {
			if f := s.Stacks.Frames(h.Stack); len(f) != 1 || f[0] != (snapshot.Frame{Function: "g", File: "m.py", Line: 2}) {
				t.Errorf("it holds what %v allocated", f)
			}
		}
	}
}
