package record

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/memdiag/memdiag/snapshot/rundir"
)

// mostTicks is how many snapshots the clock keeps if the user did not choose the interval. With more, every second one is removed and
// the interval doubles.
const mostTicks = 32

// clock takes snapshots from outside the process at equal intervals.
type clock struct {
	out      *rundir.Writer
	interval time.Duration
	fixed    bool // whether all are kept
	due      time.Time
	taken    int
	paths    []string
}

// newClock uses the chosen interval unless it is 0. Otherwise it begins with the usual interval, which may double.
func newClock(out *rundir.Writer, chosen, usual time.Duration) *clock {
	if chosen > 0 {
		return &clock{out: out, interval: chosen, fixed: true}
	}
	return &clock{out: out, interval: usual}
}

// isDue reports whether the next snapshot is due.
func (c *clock) isDue(now time.Time) bool { return !now.Before(c.due) }

// take writes a snapshot, and thins the existing ones if there are too many.
func (c *clock) take(now time.Time, ending string, fill func(io.Writer) error) error {
	c.taken++
	path, err := c.out.WriteTick(c.taken, ending, fill)
	if err != nil {
		return err
	}
	c.paths = append(c.paths, path)
	if !c.fixed && len(c.paths) > mostTicks {
		err = c.thin()
	}
	if c.due = c.due.Add(c.interval); c.due.Before(now) {
		c.due = now.Add(c.interval)
	}
	return err
}

func (c *clock) thin() error {
	c.interval *= 2
	kept := c.paths[:0]
	for i, p := range c.paths {
		if i%2 == 0 {
			kept = append(kept, p)
		} else if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) { // an agent that takes over removes them too
			return err
		}
	}
	c.paths = kept
	return nil
}

// yield removes all but the first and the last snapshot when the disk is full: growth needs these two.
func (c *clock) yield() {
	for len(c.paths) > 2 {
		_ = os.Remove(c.paths[1]) // one that cannot be removed stays valid
		c.paths = slices.Delete(c.paths, 1, 2)
	}
}

// drop removes all snapshots that were taken: an agent's snapshots contain more.
func (c *clock) drop() {
	for _, p := range c.paths {
		_ = os.Remove(p) // one that cannot be removed stays valid
	}
	c.paths = nil
}
