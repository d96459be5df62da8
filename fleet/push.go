package fleet

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/memdiag/memdiag/fleet/clickhouse"
	"github.com/memdiag/memdiag/fleet/parquet"
)

// Limits of one push: a server holds the rows of an insertion in memory for each shard, and many small insertions cost it more than a
// few large ones.
const (
	mostPushed      = 500      // runs
	mostPushedBytes = 32 << 20 // of packed tables
)

// Pushed says what Push did.
type Pushed struct{ Runs, Before int } // Before is how many were there

// Push inserts the runs of a folder that the fleet on a server lacks or has in an earlier state. The rows of an interrupted push do not
// count. tell is called after each portion with the number of runs that are done.
func Push(ctx context.Context, dir string, a *clickhouse.Address, tell func(done, of int)) (Pushed, error) {
	local, err := OpenStore(dir)
	if err != nil {
		return Pushed{}, err
	}
	s, err := openServer(ctx, a)
	if err != nil {
		return Pushed{}, err
	}
	there, last, err := s.added()
	if err != nil {
		return Pushed{}, err
	}
	var left []*Part
	of := 0
	for _, p := range local.Parts {
		lacks := slices.DeleteFunc(slices.Clone(p.Runs), func(r Run) bool {
			added, ok := there[r.ID]
			return ok && added == micros(r.Added)
		})
		of += len(p.Runs)
		if len(lacks) > 0 {
			missing := *p
			missing.Runs, missing.all = lacks, false
			left = append(left, &missing)
		}
	}
	c := Pushed{Before: of}
	for _, p := range left {
		c.Before -= len(p.Runs)
	}
	for len(left) > 0 {
		n, runs, size := 0, 0, int64(0)
		for ; n < len(left) && (n == 0 || runs+len(left[n].Runs) <= mostPushed && size+left[n].Bytes <= mostPushedBytes); n++ {
			runs, size = runs+len(left[n].Runs), size+left[n].Bytes
		}
		if last, err = s.push(left[:n], last); err != nil {
			return c, err
		}
		c.Runs += runs
		tell(c.Before+c.Runs, of)
		left = left[n:]
	}
	return c, nil
}

// added is when each run that is on the server was added to the folder it came from, and the last push's number.
func (s *server) added() (there map[string]int64, last int64, err error) {
	there = make(map[string]int64)
	query := fmt.Sprintf("SELECT run, added, push FROM %s %s", s.table("runs"), newestPush)
	err = s.db.Select(s.ctx, query, []parquet.Kind{parquet.Text, parquet.Int, parquet.Int}, func(v []*parquet.Values, rows int) error {
		for i := range rows {
			there[v[0].Text(i)] = v[1].Int(i)
			last = max(last, v[2].Int(i))
		}
		return nil
	})
	return there, last, err
}

// pushing is a run that is being inserted.
type pushing struct{ push, month, row int64 }

func newPushing(push int64, began time.Time) *pushing {
	return &pushing{push: push, month: int64(began.Year()*100 + int(began.Month()))}
}

// push inserts the runs that count from these parts: their rows in the table runs at the end, which has all others count.
// It returns the last push's number.
func (s *server) push(parts []*Part, last int64) (int64, error) {
	runs := make(map[string]*pushing)
	for _, p := range parts {
		for i := range p.Runs {
			r := &p.Runs[i]
			last = pushNumber(last)
			runs[r.ID] = newPushing(last, began(micros(r.Started), micros(r.Added)))
		}
	}
	for i := range Schema {
		if t := &Schema[i]; t.Name != "runs" {
			if err := s.insert(t, parts, runs); err != nil {
				return last, err
			}
		}
	}
	return last, s.insert(TableNamed("runs"), parts, runs)
}

// pushNumber is a unique push number: the time in microseconds, and ten random bits for others who push in the same microsecond. It is
// above the last number, whose clock may be ahead; others have the same last number.
func pushNumber(last int64) int64 {
	return max(time.Now().UnixMicro(), last>>pushChance+1)<<pushChance | rand.Int64N(1<<pushChance)
}

const pushChance = 10 // bits

// CheckServer returns an error if no run can be added to a server: it does not answer, or has no fleet.
func CheckServer(ctx context.Context, a *clickhouse.Address) error {
	_, err := openServer(ctx, a)
	return err
}

// AddToServer stores the tables of one run on a server, replacing the run's earlier state in the fleet. The run counts once all of it
// is stored. If two add it at the same time, the later one counts.
func AddToServer(ctx context.Context, a *clickhouse.Address, t Tables) (before Earlier, err error) {
	s, err := openServer(ctx, a)
	if err != nil {
		return before, err
	}
	row, last := t["runs"].Columns, int64(0)
	query := fmt.Sprintf("SELECT max(push), argMax(commit, push), argMax(ranks, push), argMax(steps, push) FROM %s WHERE run = %s", s.table("runs"), clickhouse.Text(row[0].Texts[0]))
	err = s.db.Select(ctx, query, []parquet.Kind{parquet.Int, parquet.Text, parquet.Int, parquet.Int}, func(v []*parquet.Values, _ int) error {
		last = v[0].Int(0)
		before = Earlier{v[1].Text(0), v[2].Int(0), v[3].Int(0)}
		t.keepCommit(before)
		return nil
	})
	if err != nil {
		return before, err
	}
	run := newPushing(pushNumber(last), began(row[4].Ints[0], row[3].Ints[0]))
	for i := range Schema {
		if name := Schema[i].Name; name != "runs" {
			if err := s.insertTable(t[name], run); err != nil {
				return before, err
			}
		}
	}
	return before, s.insertTable(t["runs"], run)
}

// insertTable sends all rows of a run's table.
func (s *server) insertTable(t *Rows, run *pushing) error {
	rows := t.Columns[0].Len()
	if rows == 0 {
		return nil
	}
	columns := slices.Clone(t.Columns)
	for _, c := range serverColumns {
		columns = append(columns, parquet.Column{Name: c.Name, Kind: c.Kind})
	}
	push, row, month := &columns[len(t.Columns)], &columns[len(t.Columns)+1], &columns[len(t.Columns)+2]
	for i := range rows {
		push.Ints, row.Ints, month.Ints = append(push.Ints, run.push), append(row.Ints, int64(i)), append(month.Ints, run.month)
	}
	into := s.db.Insert(s.ctx, t.Schema.Name+s.ending())
	defer into.Abort()
	if err := into.Write(columns); err != nil {
		return err
	}
	return into.Close()
}

// insert sends a table's rows of some runs.
func (s *server) insert(t *TableSchema, parts []*Part, runs map[string]*pushing) error {
	var columns []string
	for _, c := range t.Columns {
		columns = append(columns, c.Name)
	}
	into := s.db.Insert(s.ctx, t.Name+s.ending())
	defer into.Abort()
	for _, p := range parts {
		err := p.scan(t.Name, columns, anyRun, func(b *Batch) error {
			if rows := numberedRows(t, b, p.skip(b), runs); rows[0].Len() > 0 {
				return into.Write(rows)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return into.Close()
}

// numberedRows are the rows of a batch that count, with the columns that they have on a server.
func numberedRows(t *TableSchema, b *Batch, skip func(row int) bool, runs map[string]*pushing) []parquet.Column {
	var out []parquet.Column
	for _, c := range pushColumns(t) {
		out = append(out, parquet.Column{Name: c.Name, Kind: c.Kind})
	}
	push, row, month := &out[len(t.Columns)], &out[len(t.Columns)+1], &out[len(t.Columns)+2]
	for i := range b.Rows {
		if skip(i) {
			continue
		}
		of := runs[b.Text(0, i)]
		push.Ints, row.Ints, month.Ints = append(push.Ints, of.push), append(row.Ints, of.row), append(month.Ints, of.month)
		of.row++
		for j := range t.Columns {
			switch c := &out[j]; c.Kind {
			case parquet.Text:
				c.Texts = append(c.Texts, b.Text(j, i))
			case parquet.Float:
				c.Floats = append(c.Floats, b.Float(j, i))
			default:
				c.Ints = append(c.Ints, b.Int(j, i))
			}
		}
	}
	return out
}

// CompactServer has each of the servers delete the rows that count nowhere and are a day old: of pushes that were cut off, and of
// runs that were pushed again. It returns how many pushes they were of.
func CompactServer(ctx context.Context, a *clickhouse.Address, now time.Time) (int, error) {
	all, err := OpenServer(ctx, a)
	if err != nil {
		return 0, err
	}
	count := make(map[int64]bool)
	for _, p := range all.Parts {
		for i := range p.Runs {
			count[p.Runs[i].push] = true
		}
	}
	before := now.Add(-24*time.Hour).UnixMicro() << pushChance
	gone := make(map[int64]bool)
	for _, one := range a.Each() {
		s, err := openServer(ctx, one)
		if err != nil {
			return 0, err
		}
		for i := range Schema {
			if err := s.remove(Schema[i].Name+storedTable, before, count, gone); err != nil {
				return 0, err
			}
		}
	}
	return len(gone), nil
}

// remove deletes from a table the rows of pushes that do not count and are older than before. It notes these pushes in gone.
func (s *server) remove(table string, before int64, count, gone map[int64]bool) error {
	var stale []string
	query := fmt.Sprintf("SELECT DISTINCT push FROM %s WHERE push < %d", s.named(table), before)
	err := s.db.Select(s.ctx, query, []parquet.Kind{parquet.Int}, func(v []*parquet.Values, rows int) error {
		for i := range rows {
			if push := v[0].Int(i); !count[push] {
				gone[push] = true
				stale = append(stale, strconv.FormatInt(push, 10))
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for some := range slices.Chunk(stale, mostNamed) {
		if err := s.db.Exec(s.ctx, fmt.Sprintf("ALTER TABLE %s DELETE WHERE push IN (%s)", s.named(table), strings.Join(some, ", "))); err != nil {
			return err
		}
	}
	return nil
}
