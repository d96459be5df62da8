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

// mostTicks is how many snapshots by the clock are kept where nobody chose the
// time between them: when there are more, every second one goes and that time
// doubles.
const mostTicks = 32

// clock takes snapshots of a run from outside of the process, at equal distances
// in time.
type clock struct {
	out      *rundir.Writer
	interval time.Duration
	fixed    bool // all are kept
	due      time.Time
	taken    int
	paths    []string
}

// newClock begins with a time between snapshots of chosen, unless that is 0, or of
// usual, which may double.
func newClock(out *rundir.Writer, chosen, usual time.Duration) *clock {
	if chosen > 0 {
		return &clock{out: out, interval: chosen, fixed: true}
	}
	return &clock{out: out, interval: usual}
}

// isDue reports whether the next snapshot is to be taken.
func (c *clock) isDue(now time.Time) bool { return !now.Before(c.due) }

// take writes a snapshot and thins those that are there.
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

// yield leaves the first and the last, where the disk is full: the two that growth can
// be known by.
func (c *clock) yield() {
	for len(c.paths) > 2 {
		_ = os.Remove(c.paths[1]) // what stays is a snapshot like any other
		c.paths = slices.Delete(c.paths, 1, 2)
	}
}

// drop takes back all that was taken: an agent tells more.
func (c *clock) drop() {
	for _, p := range c.paths {
		_ = os.Remove(p) // what stays is a snapshot like any other
	}
	c.paths = nil
}
