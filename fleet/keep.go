package fleet

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
)

// Compaction says what Compact did.
type Compaction struct {
	Before, After int   // folders
	BytesBefore   int64 // of all tables
	BytesAfter    int64
}

// mostMerged bounds what is merged at once, in bytes of packed tables.
const mostMerged = 256 << 20

// Compact merges the runs of each day that has two folders or more, which makes less and larger
// files, and removes what killed writers left a day ago. Runs stay what they are.
func Compact(dir string, now time.Time) (Compaction, error) {
	s, err := OpenStore(dir)
	if err != nil {
		return Compaction{}, err
	}
	c := Compaction{Before: len(s.Parts), BytesBefore: s.Bytes()}
	if err := sweep(dir, now); err != nil {
		return c, err
	}
	var stale []*Part // removed all at once at the end, so that who reads meanwhile meets it once
	for from := 0; from < len(s.Parts); {
		to, size := from, int64(0)
		for to < len(s.Parts) && s.Parts[to].Day == s.Parts[from].Day && (to == from || size+s.Parts[to].Bytes <= mostMerged) {
			size += s.Parts[to].Bytes
			to++
		}
		if to-from > 1 {
			err := merge(dir, s.Parts[from:to])
			switch {
			case err == nil:
				stale = append(stale, s.Parts[from:to]...)
			case !errors.As(err, new(*MovedError)): // else another process merges them, or has added one again
				return c, err
			}
		}
		from = to
	}
	for _, p := range stale {
		if err := p.remove(); err != nil {
			return c, err
		}
	}
	if s, err = OpenStore(dir); err != nil {
		return c, err
	}
	c.After, c.BytesAfter = len(s.Parts), s.Bytes()
	return c, nil
}

// merge writes one part for several. Until these are removed, runs are there twice, and count once.
func merge(dir string, parts []*Part) error {
	t, err := readParts(parts, "")
	if err != nil {
		return err
	}
	var names []string
	for _, p := range parts {
		names = append(names, p.Name)
	}
	temporary, err := writePart(dir, t)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temporary) }()
	sum := strconv.FormatUint(xxhash.Sum64String(strings.Join(names, " ")), 16)
	return putInPlace(temporary, filepath.Join(dir, parts[0].Day, merged+strings.Repeat("0", 16-len(sum))+sum))
}

// sweep removes temporary folders that are a day old.
func sweep(dir string, now time.Time) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !strings.HasPrefix(e.Name(), tempStem) || now.Sub(info.ModTime()) < 24*time.Hour {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// Old are the parts of days that ended longer ago than keep.
func (s *Store) Old(now time.Time, keep time.Duration) []*Part {
	limit := now.Add(-keep).UTC().Format(day)
	var out []*Part
	for _, p := range s.Parts {
		if p.Day < limit {
			out = append(out, p)
		}
	}
	return out
}

// Remove deletes parts, and days that have none left.
func (s *Store) Remove(parts []*Part) error {
	for _, p := range parts {
		if err := p.remove(); err != nil {
			return err
		}
		_ = os.Remove(filepath.Dir(p.dir)) // which works on an empty one only
	}
	return nil
}
