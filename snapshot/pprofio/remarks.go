package pprofio

import (
	"math"
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
	holders  []held
}

// held is a holder that a recorder found for arrays of a size. A profile does not distinguish single arrays.
type held struct {
	each   snapshot.Bytes
	found  int64 // how many of them
	holder snapshot.Holder
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
		case "holder":
			if h, ok := heldBy(value); ok {
				r.holders = append(r.holders, h)
			}
		case "note":
			r.notes = append(r.notes, value)
		}
	}
	return r
}

// set applies the remarks to a snapshot.
func (r *remarks) set(s *snapshot.Snapshot) {
	s.Mark.Step, s.Rank = r.step, r.rank
	if r.process != "" {
		s.History = snapshot.History{First: time.UnixMicro(r.since), Last: s.Mark.Time, Process: r.process}
	}
	r.hold(s)
}

// heldBy reads "8192 499 500 list __main__.kept": the bytes of each array, how many were found, the holder's items, its
// kind and its path.
func heldBy(remark string) (held, bool) {
	parts := strings.SplitN(remark, " ", 5)
	if len(parts) < 5 {
		return held{}, false
	}
	var figures [3]uint64
	for i := range figures {
		var err error
		if figures[i], err = strconv.ParseUint(parts[i], 10, 31); err != nil {
			return held{}, false
		}
	}
	return held{
		each: snapshot.Bytes(figures[0]), found: int64(figures[1]),
		holder: snapshot.Holder{Kind: parts[3], Path: parts[4], Items: int(figures[2])},
	}, true
}

// nearBytes is how much the bytes found by a recorder may differ from a stack's, as a share of these: a function may also return small
// numbers, and blocks may have been allocated in between.
const nearBytes = 0.25

// hold assigns each holder to the stack whose bytes are nearest to those found, within nearBytes, and that has at least three quarters
// as many blocks. If there is none, the holder gets the stacks that have these bytes together.
func (r *remarks) hold(s *snapshot.Snapshot) {
	for _, h := range r.holders {
		bytes := float64(h.each) * float64(h.found)
		stack, near := snapshot.NoStack, nearBytes
		for i, size := range s.Blocks.Size {
			off := math.Abs(bytes/float64(size) - 1)
			if off < near && float64(s.Blocks.CountOf(i)) >= (1-nearBytes)*float64(h.found) {
				stack, near = s.Blocks.Stack[i], off
			}
		}
		stacks := []snapshot.StackID{stack}
		if stack == snapshot.NoStack {
			stacks = h.parts(s)
		}
		for _, stack := range stacks {
			h.holder.Stack = stack
			s.Holders = append(s.Holders, h.holder)
		}
	}
}

// parts are the stacks of which each has a block of the size or more for each item, if they have as many bytes together as were
// found: the lines of a function each make one, and the program keeps what it returns.
func (h *held) parts(s *snapshot.Snapshot) []snapshot.StackID {
	var stacks []snapshot.StackID
	var bytes float64
	for i, size := range s.Blocks.Size {
		count := s.Blocks.CountOf(i)
		if h.holder.Items > 0 && size == h.each*snapshot.Bytes(count) && float64(count) >= (1-nearBytes)*float64(h.holder.Items) {
			stacks, bytes = append(stacks, s.Blocks.Stack[i]), bytes+float64(size)
		}
	}
	if math.Abs(float64(h.each)*float64(h.found)/bytes-1) >= nearBytes {
		return nil
	}
	return stacks
}
