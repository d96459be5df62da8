package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
)

// mostBeside is how many processes are checked at most, and aLot the least memory of one that is named.
const mostBeside, aLot = 10_000, 256 << 20

// beside lists other processes that use much memory here, on GPUs and in memdiag's control group, a clause each.
func beside() []string { return append(besideOnGPUs(), besideInGroup()...) }

// besideOnGPUs lists the processes that NVIDIA's driver knows, before memdiag runs the program; none without NVIDIA's tool. In a
// container the driver may list none, or PIDs of the host.
func besideOnGPUs() []string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	text, err := exec.CommandContext(ctx, "nvidia-smi", "--query-compute-apps=gpu_name,pid,process_name,used_memory", "--format=csv,noheader,nounits").Output()
	if err != nil {
		return nil
	}
	var all []taker
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(line, ", ") // a process name may contain commas
		if len(fields) < 4 {
			continue
		}
		last := len(fields) - 1
		if mebibytes, err := strconv.ParseInt(strings.TrimSpace(fields[last]), 10, 32); err == nil && mebibytes<<20 >= aLot {
			name := fmt.Sprintf("%s (process %s)", filepath.Base(strings.Join(fields[2:last], ", ")), fields[1])
			all = append(all, taker{name, snapshot.Bytes(mebibytes) << 20, "of " + fields[0]})
		}
	}
	return clauses(all)
}

// taker is a process that uses much memory.
type taker struct {
	name  string
	size  snapshot.Bytes
	where string
}

// clauses names the largest.
func clauses(all []taker) (out []string) {
	slices.SortFunc(all, func(a, b taker) int { return cmp.Compare(b.size, a.size) })
	for _, p := range all[:min(3, len(all))] {
		out = append(out, report.Printable(fmt.Sprintf("%s takes %s %s", p.name, p.size, p.where)))
	}
	if len(all) > 3 {
		out = append(out, fmt.Sprintf("%d more processes take %s each, or more", len(all)-3, snapshot.Bytes(aLot)))
	}
	return out
}

func besideInGroup() []string {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	var all []taker
	entries, _ := os.ReadDir("/proc") // what was read before an error is used
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
			all = append(all, taker{strings.TrimSpace(string(name)), size, "in the same control group"})
		}
	}
	return clauses(all)
}
