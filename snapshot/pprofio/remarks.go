package pprofio

import (
	"strconv"
	"strings"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

// remarks are what memdiag says in comments of the profiles that it writes, of the
// snapshot that they were made of.
type remarks struct {
	step     int64
	rank     int
	producer string
	process  string // of a recording
	since    int64  // and when it began, in Unix microseconds
	devices  map[string]string
	notes    []string
}

func (t *tables) remarks() remarks {
	r := remarks{step: snapshot.NoStep, rank: snapshot.NoRank, devices: make(map[string]string)}
	for _, i := range t.comments {
		text, ours := strings.CutPrefix(t.text(i), "memdiag: ")
		if !ours {
			continue
		}
		what, value, _ := strings.Cut(text, " ")
		switch what {
		case "step":
			if step, err := strconv.ParseUint(value, 10, 63); err == nil {
				r.step = int64(step)
			}
		case "rank":
			if rank, err := strconv.ParseUint(value, 10, 31); err == nil {
				r.rank = int(rank)
			}
		case "producer":
			r.producer = value
		case "recording":
			process, since, _ := strings.Cut(value, " since ")
			if at, err := strconv.ParseUint(since, 10, 63); err == nil && int64(at) <= t.timeNanos/1000 {
				r.process, r.since = process, int64(at)
			}
		case "device":
			device, name, _ := strings.Cut(value, " is ")
			r.devices[device] = name
		case "note":
			r.notes = append(r.notes, value)
		}
	}
	return r
}

// set gives a snapshot what the remarks tell.
func (r *remarks) set(s *snapshot.Snapshot) {
	s.Mark.Step, s.Rank = r.step, r.rank
	if r.process != "" {
		s.History = snapshot.History{First: time.UnixMicro(r.since), Last: s.Mark.Time, Process: r.process}
	}
}
