package fleet

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/memdiag/memdiag/fleet/parquet"
)

// swap exchanges two folders in three steps. If memdiag is killed between them, the run is missing
// until it is added again.
func swap(a, b string) error {
	aside := filepath.Join(filepath.Dir(a), tempStem+rand.Text())
	if err := os.Rename(b, aside); err != nil {
		return err
	}
	if err := os.Rename(a, b); err != nil {
		_ = os.Rename(aside, b) // unless another process has put one there
		return err
	}
	return os.Rename(aside, a)
}

func workers() int { return max(1, runtime.GOMAXPROCS(0)) }

// eachOf calls do for 0 to n-1, a few at a time, and returns the first error by number.
func eachOf(n int, do func(int) error) error {
	errs := make([]error, n)
	var group sync.WaitGroup
	next := make(chan int)
	for range min(n, workers()) {
		group.Go(func() {
			for i := range next {
				errs[i] = do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Batch is one row group of the columns that were asked for.
type Batch struct {
	Part  *Part
	Group int
	Rows  int

	columns []*parquet.Values
}

// Text is the value of a column, by its place among those asked for.
func (b *Batch) Text(column, row int) string { return b.columns[column].Text(row) }

// Int is the value of a column.
func (b *Batch) Int(column, row int) int64 { return b.columns[column].Int(row) }

// Float is the value of a column.
func (b *Batch) Float(column, row int) float64 { return b.columns[column].Float(row) }

// Time is the value of a column; zero for an unknown one.
func (b *Batch) Time(column, row int) time.Time {
	if v := b.columns[column].Int(row); v > 0 {
		return time.UnixMicro(v).UTC()
	}
	return time.Time{}
}

// open opens a table's file and finds columns in it.
func (p *Part) open(table string, columns []string) (*parquet.File, []int, error) {
	f, err := parquet.Open(p.file(table))
	if errors.Is(err, fs.ErrNotExist) {
		if p.lacks(table) {
			return nil, nil, &parquet.FormatError{Path: p.file(table), Reason: "the file is missing"}
		}
		return nil, nil, &MovedError{p.file(table)}
	}
	if err != nil {
		return nil, nil, err
	}
	if !p.stays() { // the file may be of another version of the run
		_ = f.Close()
		return nil, nil, &MovedError{f.Path}
	}
	if v := f.Notes[versionNote]; v != strconv.Itoa(Version) {
		_ = f.Close()
		return nil, nil, &VersionError{f.Path, v}
	}
	schema := TableNamed(table)
	var at []int
	for _, name := range columns {
		i := slices.IndexFunc(schema.Columns, func(c ColumnSchema) bool { return c.Name == name })
		found := f.Find(name, schema.Columns[i].Kind)
		if found < 0 {
			_ = f.Close()
			return nil, nil, &parquet.FormatError{Path: f.Path, Reason: "no column " + name + " of kind " + schema.Columns[i].Kind.String()}
		}
		at = append(at, found)
	}
	return f, at, nil
}

// stays reports whether the folder is the one that was listed.
func (p *Part) stays() bool {
	now, err := os.Stat(p.dir)
	return err == nil && os.SameFile(now, p.was)
}

// lacks reports whether the folder that was listed is there without a table's file.
func (p *Part) lacks(table string) bool {
	_, err := os.Stat(p.file(table))
	return errors.Is(err, fs.ErrNotExist) && p.stays()
}

// anyRun wants all of a part's runs.
func anyRun(*Run) bool { return true }

// is wants one run.
func is(id string) func(*Run) bool { return func(r *Run) bool { return r.ID == id } }

// scan calls see for each row group that may have rows of the runs that are wanted.
func (p *Part) scan(table string, columns []string, wanted func(*Run) bool, see func(*Batch) error) error {
	if p.server != nil {
		return p.ask(table, columns, wanted, see)
	}
	if table == functionsTable && p.lacks(table) {
		return nil
	}
	f, at, err := p.open(table, columns)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	for g := range f.Groups() {
		b, err := p.batch(f, at, g)
		if err != nil {
			return err
		}
		if err := see(b); err != nil {
			return err
		}
	}
	return nil
}

func (p *Part) batch(f *parquet.File, at []int, group int) (*Batch, error) {
	b := &Batch{Part: p, Group: group, Rows: f.GroupRows(group)}
	for _, column := range at {
		v, err := f.Read(group, column)
		if err != nil {
			return nil, err
		}
		b.columns = append(b.columns, v)
	}
	return b, nil
}

// Scan calls see for each row group of a table, from several goroutines at once, with the number of
// the goroutine below workers(). The first column must be run.
func (s *Store) Scan(table string, columns []string, see func(worker int, b *Batch) error) error {
	type work struct {
		part  *Part
		file  *parquet.File
		at    []int
		group int
	}
	var all []work
	var files []*parquet.File
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	// Files are opened in portions, so that a fleet of many runs does not need as many descriptors.
	flush := func() error {
		turns := make(chan int, workers())
		for i := range workers() {
			turns <- i
		}
		err := eachOf(len(all), func(i int) error {
			w := all[i]
			b, err := w.part.batch(w.file, w.at, w.group)
			if err != nil {
				return err
			}
			worker := <-turns
			defer func() { turns <- worker }()
			return see(worker, b)
		})
		for _, f := range files {
			_ = f.Close()
		}
		all, files = nil, nil
		return err
	}
	for _, p := range s.Parts {
		if len(p.Runs) == 0 {
			continue
		}
		f, at, err := p.open(table, columns)
		if err != nil {
			return err
		}
		files = append(files, f)
		for g := range f.Groups() {
			all = append(all, work{p, f, at, g})
		}
		if len(files) == 200 {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// skip is nil if all rows count.
func (p *Part) skip(b *Batch) func(int) bool {
	if p.all {
		return nil
	}
	counts := make(map[string]bool)
	for i := range p.Runs {
		counts[p.Runs[i].ID] = true
	}
	return func(row int) bool { return !counts[b.Text(0, row)] }
}

// readParts reads whole parts, of the runs that count, without one.
func readParts(parts []*Part, without string) (Tables, error) {
	t := NewTables()
	for i := range Schema {
		rows := t[Schema[i].Name]
		var columns []string
		for _, c := range Schema[i].Columns {
			columns = append(columns, c.Name)
		}
		for _, p := range parts {
			if len(p.Runs) == 0 {
				continue
			}
			err := p.scan(Schema[i].Name, columns, anyRun, func(b *Batch) error {
				skip := p.skip(b)
				for row := range b.Rows {
					if b.Text(0, row) == without || skip != nil && skip(row) {
						continue
					}
					for j := range rows.Columns {
						switch c := &rows.Columns[j]; c.Kind {
						case parquet.Text:
							c.Texts = append(c.Texts, b.Text(j, row))
						case parquet.Float:
							c.Floats = append(c.Floats, b.Float(j, row))
						default:
							c.Ints = append(c.Ints, b.Int(j, row))
						}
					}
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return t, nil
}

// places are the dictionary indices of all rows of a column. Texts always have them; a column of one page without a dictionary is its
// own dictionary.
func places(v *parquet.Values, rows int) []uint32 {
	if v.Places != nil {
		return v.Places
	}
	out := make([]uint32, rows)
	for i := range out {
		out[i] = uint32(i)
	}
	return out
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
