package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
)

// mostBeside is how many processes are looked at, and aLot what one takes at least to be named.
const mostBeside, aLot = 10_000, 256 << 20

// beside are the other processes of memdiag's control group that take much memory, a clause each; none where no system tells.
func beside() []string {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	type process struct {
		name string
		size snapshot.Bytes
	}
	var all []process
	entries, _ := os.ReadDir("/proc") // what was read before an error counts
	for _, e := range entries[:min(len(entries), mostBeside)] {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		folder := "/proc/" + e.Name()
		group, err := os.ReadFile(filepath.Join(folder, "cgroup")) //nolint:gosec // the system's
		if err != nil || !bytes.Equal(group, own) {
			continue
		}
		statm, _ := os.ReadFile(filepath.Join(folder, "statm")) //nolint:gosec // the system's; one that ended has none
		fields := strings.Fields(string(statm))
		if len(fields) < 2 {
			continue
		}
		pages, _ := strconv.ParseInt(fields[1], 10, 64)
		if size := snapshot.Bytes(pages * int64(os.Getpagesize())); size >= aLot {
			name, _ := os.ReadFile(filepath.Join(folder, "comm")) //nolint:gosec // the system's
			all = append(all, process{strings.TrimSpace(string(name)), size})
		}
	}
	slices.SortFunc(all, func(a, b process) int { return cmp.Compare(b.size, a.size) })
	var out []string
	for _, p := range all[:min(3, len(all))] {
		out = append(out, fmt.Sprintf("%s takes %s in the same control group", report.Printable(p.name), p.size))
	}
	if len(all) > 3 {
		out = append(out, fmt.Sprintf("%d more processes take %s each, or more", len(all)-3, snapshot.Bytes(aLot)))
	}
	return out
}
