package record

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

// HostName is the file of a run that holds the host's figures of the whole
// process tree: comma-separated, a line a moment.
const HostName = "host.csv"

const (
	hostEvery = time.Second
	// pssEvery is the same for PSS, which the kernel adds up page by page.
	pssEvery = 10 * time.Second
)

// host samples a process tree until it is stopped.
type host struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
	failed error
}

func watchHost(ctx context.Context, pid int, path string) *host {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	h := &host{cancel: cancel}
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		return h
	}
	h.done.Go(func() { h.failed = sample(ctx, pid, path) })
	return h
}

// stop returns notes on what was not sampled.
func (h *host) stop() []string {
	h.cancel()
	h.done.Wait()
	if h.failed != nil {
		return []string{fmt.Sprintf("the host's figures were recorded in part: %v", h.failed)}
	}
	return nil
}

func sample(ctx context.Context, root int, path string) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	defer func() {
		if closed := f.Close(); err == nil {
			err = closed
		}
	}()
	if _, err := f.WriteString("time_us,processes,rss_bytes,pss_bytes\n"); err != nil {
		return err
	}
	tick := time.NewTicker(hostEvery)
	defer tick.Stop()
	for last := (time.Time{}); ; {
		now := time.Now()
		tree := processTree(root)
		var rss snapshot.Bytes
		for _, p := range tree {
			rss += p.rss
		}
		pss := "" // unknown
		if now.Sub(last) >= pssEvery {
			last = now
			if sum, ok := sumPSS(tree); ok {
				pss = strconv.FormatInt(int64(sum), 10)
			}
		}
		if _, err := fmt.Fprintf(f, "%d,%d,%d,%s\n", now.UnixMicro(), len(tree), rss, pss); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// process is one of a tree, as /proc tells.
type process struct {
	pid, parent int
	rss         snapshot.Bytes
}

// processTree lists a process and all below it.
func processTree(root int) []process {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is right
	children := make(map[int][]process)
	var tree []process
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		p, ok := parseStat(text)
		if !ok {
			continue
		}
		if p.pid == root {
			tree = append(tree, p)
		}
		children[p.parent] = append(children[p.parent], p)
	}
	for i := 0; i < len(tree); i++ {
		tree = append(tree, children[tree[i].pid]...)
	}
	return tree
}

// parseStat reads a line of /proc/PID/stat. The name, in parentheses, may hold
// anything.
func parseStat(text []byte) (p process, ok bool) {
	end := bytes.LastIndexByte(text, ')')
	begin := bytes.IndexByte(text, ' ')
	if begin < 0 || end < begin {
		return p, false
	}
	// After the name: state, parent, …; resident pages are the 24th field of all.
	fields := strings.Fields(string(text[end+1:]))
	if len(fields) < 22 {
		return p, false
	}
	pid, err1 := strconv.Atoi(string(text[:begin]))
	parent, err2 := strconv.Atoi(fields[1])
	pages, err3 := strconv.ParseInt(fields[21], 10, 64)
	if err1 != nil || err2 != nil || err3 != nil {
		return p, false
	}
	return process{pid, parent, snapshot.Bytes(pages * int64(os.Getpagesize()))}, true
}

// sumPSS adds up the proportional set sizes; not ok where the kernel tells none.
func sumPSS(tree []process) (sum snapshot.Bytes, ok bool) {
	for _, p := range tree {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p.pid))
		if err != nil {
			continue
		}
		lines := bufio.NewScanner(bytes.NewReader(text))
		for lines.Scan() {
			fields := strings.Fields(lines.Text())
			if len(fields) == 3 && fields[0] == "Pss:" {
				if kib, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
					sum += snapshot.Bytes(kib) << 10
					ok = true
				}
			}
		}
	}
	return sum, ok
}
