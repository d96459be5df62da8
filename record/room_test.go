//go:build unix

package record

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// TestRoomIsTheLeastThatTheMachineAndItsGroupsHaveLeft holds both implementations, Go's and
// the agent's, to one table.
func TestRoomIsTheLeastThatTheMachineAndItsGroupsHaveLeft(t *testing.T) {
	agent, err := filepath.Abs("agent")
	if err != nil {
		t.Fatal(err)
	}
	machine := "MemTotal: 9000 kB\nMemFree: 1000 kB\nMemAvailable: 8000 kB\n"
	for _, c := range []struct {
		name  string
		files map[string]string
		want  snapshot.Bytes
	}{
		{"no Linux", nil, snapshot.Unknown},
		{"the machine alone", map[string]string{"proc/meminfo": machine}, 8000 << 10},
		{"a group of the second version without a limit", map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "0::/a\n", "groups/a/memory.max": "max\n", "groups/a/memory.current": "5\n",
		}, 8000 << 10},
		{"one above it has a limit, and cached files can go", map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "0::/a/b\n",
			"groups/a/b/memory.max": "max\n", "groups/a/b/memory.current": "5\n",
			"groups/a/memory.max": "100000\n", "groups/a/memory.current": "30000\n", "groups/a/memory.stat": "anon 7\ninactive_file 2000\nactive_file 500\n",
		}, 72000},
		{"a container that sees its own group as the top", map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "0::/docker/abc\n", "groups/memory.max": "5000\n", "groups/memory.current": "1000\n",
		}, 4000},
		{"groups of the first version", map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/m:n\n0::/\n",
			"groups/memory/m:n/memory.limit_in_bytes": "9223372036854771712\n", "groups/memory/m:n/memory.usage_in_bytes": "400\n",
			"groups/memory/memory.limit_in_bytes": "1000\n", "groups/memory/memory.usage_in_bytes": "400\n", "groups/memory/memory.stat": "inactive_file 9\ntotal_inactive_file 50\n",
		}, 650},
		{"a group that does not tell what it uses", map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "0::/a\n", "groups/a/memory.max": "5000\n",
		}, 8000 << 10},
		{"files that are odd", map[string]string{
			"proc/meminfo": "MemAvailable:\nMemAvailable: 8000 kB\n", "proc/self/cgroup": "odd\n\n0\n0::/a\xff\n",
			"groups/a\xff/memory.max": "5000\n", "groups/a\xff/memory.current": "1000\n", "groups/a\xff/memory.stat": "\ninactive_file\n",
			"groups/memory.max": strings.Repeat("9", 5000), "groups/memory.current": "1\n",
		}, 4000},
		{"a group that uses more than its limit", map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "0::/a\n", "groups/a/memory.max": "5000\n", "groups/a/memory.current": "6000\n",
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range c.files {
				path := filepath.Join(dir, strings.Replace(name, "proc/self", "proc/77", 1))
				if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			if len(c.files) > 1 {
				if err := os.Symlink("77", filepath.Join(dir, "proc", "self")); err != nil {
					t.Fatal(err)
				}
			}
			proc, groups := filepath.Join(dir, "proc"), filepath.Join(dir, "groups")
			if got := room(proc, groups, 77); got != c.want {
				t.Errorf("got %d bytes, want %d", got, c.want)
			}
			path, err := exec.LookPath("python3")
			if err != nil {
				t.Skip("no Python here")
			}
			command := exec.Command(path, "-X", "warn_default_encoding", "-W", "error", "-c", "import sys; from memdiag import _room; print(_room.room(*sys.argv[1:]))", proc, groups)
			command.Env = append(os.Environ(), pathVariable+"="+agent)
			said, err := command.CombinedOutput()
			want := fmt.Sprintf("%d\n", c.want)
			if c.want == snapshot.Unknown {
				want = "None\n"
			}
			if err != nil || string(said) != want {
				t.Errorf("the agent: %v, %q; want %q", err, said, want)
			}
		})
	}
}
