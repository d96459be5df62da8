package fleet

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/fleet/parquet"
)

// MovedError is a part that another process has merged, replaced or deleted since it was listed. Who opens the fleet
// again sees what came in its place.
type MovedError struct{ Path string }

func (e *MovedError) Error() string {
	return e.Path + ": the file is gone: another process has replaced it, or it was deleted"
}

func (e *MovedError) Unwrap() error { return fs.ErrNotExist }

// Again runs a function that opens and queries a fleet, and runs it again if a part was moved meanwhile. The function must write
// nothing before everything is read.
func Again(do func() error) (err error) {
	const tries = 20
	for range tries {
		if err = do(); !errors.As(err, new(*MovedError)) {
			return err
		}
	}
	return err
}

// openStore reads all parts, or those that may have one run. Others may merge and replace parts meanwhile, so that a
// list can miss both what was merged and what it became: the folder is listed until nothing new is in it and no run is
// lost that was seen before.
func openStore(dir, run string) (*Store, error) {
	if err := checkMark(dir); err != nil {
		return nil, err
	}
	const rounds = 20 // each after the second is lost to a writer; a run that is missing in all of them was deleted
	known := make(map[string]*Part)
	for round := 0; ; round++ {
		s := &Store{Dir: dir}
		listed, err := list(dir, run)
		if err != nil {
			return nil, err
		}
		var fresh []*Part
		for _, p := range listed {
			if old := known[p.dir]; old != nil {
				s.Parts = append(s.Parts, old)
			} else {
				fresh = append(fresh, p)
			}
		}
		err = eachOf(len(fresh), func(i int) error {
			p := fresh[i]
			err := p.load()
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil // the next round has what came in its place
			case run != "" && errors.As(err, new(*parquet.FormatError)):
				p.was, _ = os.Stat(p.dir)
				if p.Name == run {
					p.Runs = []Run{{ID: run}} // it is damaged, and about to be replaced
				} // otherwise it is a merged part; its damage must not hide other runs
				return nil
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, p := range fresh {
			if p.was != nil {
				known[p.dir] = p
				s.Parts = append(s.Parts, p)
			}
		}
		if len(fresh) == 0 && s.has(known) || round == rounds {
			slices.SortFunc(s.Parts, func(a, b *Part) int { return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Name, b.Name)) })
			s.settle()
			return s, nil
		}
	}
}

// has reports whether all runs of these parts are among the store's.
func (s *Store) has(parts map[string]*Part) bool {
	if len(s.Parts) == len(parts) {
		return true
	}
	here := make(map[string]bool)
	for _, p := range s.Parts {
		for i := range p.Runs {
			here[p.Runs[i].ID] = true
		}
	}
	for _, p := range parts {
		if slices.ContainsFunc(p.Runs, func(r Run) bool { return !here[r.ID] }) {
			return false
		}
	}
	return true
}

// list lists the parts, or those that may have one run; none is loaded.
func list(dir, run string) ([]*Part, error) {
	days, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var parts []*Part
	for _, d := range days {
		if !dayName.MatchString(d.Name()) || !isFolder(dir, d) {
			continue
		}
		entries, err := os.ReadDir(filepath.Join(dir, d.Name()))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // its last run was deleted
			return nil, err
		}
		for _, e := range entries {
			if partName.MatchString(e.Name()) && isFolder(filepath.Join(dir, d.Name()), e) && (run == "" || e.Name() == run || strings.HasPrefix(e.Name(), merged)) {
				parts = append(parts, &Part{Day: d.Name(), Name: e.Name(), dir: filepath.Join(dir, d.Name(), e.Name())})
			}
		}
	}
	return parts, nil
}

// isFolder reports whether an entry is a folder or a link to one: who moves days to another place leaves a link, and engines of SQL
// follow it.
func isFolder(dir string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.IsDir()
	}
	info, err := os.Stat(filepath.Join(dir, e.Name()))
	return err == nil && info.IsDir()
}

// load reads the part's runs.
func (p *Part) load() (err error) {
	if p.was, err = os.Stat(p.dir); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			p.was, p.Runs = nil, nil
		}
	}()
	for _, t := range Schema {
		if info, err := os.Stat(p.file(t.Name)); err == nil {
			p.Bytes += info.Size()
		}
	}
	return p.scan("runs", runColumns, anyRun, func(b *Batch) error {
		for i := range b.Rows {
			p.Runs = append(p.Runs, b.run(i))
		}
		return nil
	})
}

// runColumns are those of a Run.
var runColumns = []string{
	"run", "name", "path", "added", "started", "ended", "status", "exit_code", "command", "workload", "commit", "library",
	"ranks", "hosts", "gpus", "steps", "seconds", "verdict", "leaks", "live_bytes", "growth_bytes",
}

// run is a row of these columns.
func (b *Batch) run(i int) Run {
	return Run{
		ID: b.Text(0, i), Name: b.Text(1, i), Path: b.Text(2, i), Added: b.Time(3, i), Started: b.Time(4, i), Ended: b.Time(5, i),
		Status: b.Text(6, i), ExitCode: b.Int(7, i), Command: b.Text(8, i), Workload: b.Text(9, i), Commit: b.Text(10, i), Library: b.Text(11, i),
		Ranks: b.Int(12, i), Hosts: b.Int(13, i), GPUs: b.Int(14, i), Steps: b.Int(15, i), Seconds: b.Float(16, i),
		Verdict: b.Text(17, i), Leaks: b.Int(18, i), Live: b.Int(19, i), Growth: b.Int(20, i),
	}
}

func (p *Part) file(table string) string { return filepath.Join(p.dir, table+ending) }

// settle makes each run count from one part: the one where it was last added, or, of equal ones, the merged one, since the other will
// be deleted.
func (s *Store) settle() {
	type place struct{ part, run int }
	best := make(map[string]place)
	for i, p := range s.Parts {
		for j := range p.Runs {
			r := &p.Runs[j]
			old, ok := best[r.ID]
			if ok {
				before := &s.Parts[old.part].Runs[old.run]
				if before.Added.After(r.Added) || before.Added.Equal(r.Added) && !strings.HasPrefix(p.Name, merged) {
					continue
				}
			}
			best[r.ID] = place{i, j}
		}
	}
	for i, p := range s.Parts {
		all := len(p.Runs)
		kept := p.Runs[:0:0]
		for j := range p.Runs {
			if best[p.Runs[j].ID] == (place{i, j}) {
				kept = append(kept, p.Runs[j])
			}
		}
		p.Runs, p.all = kept, len(kept) == all
	}
}
