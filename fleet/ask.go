package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/memdiag/memdiag/fleet/clickhouse"
	"github.com/memdiag/memdiag/fleet/parquet"
)

// A store on a server has one part. For a question about single runs, memdiag reads their rows and counts as it does in a folder. For
// a question about all runs, the server sums up. Queries name the pushes that count, so that an answer shows one state, even if
// others push meanwhile.

// Servers accept 256 KiB of SQL, which limits how many pushes, or how many bytes of fingerprints, one query names.
const (
	mostNamed      = 5000
	mostNamedBytes = 64 << 10
)

// OpenServer reads which runs a fleet on a server has.
func OpenServer(ctx context.Context, a *clickhouse.Address) (*Store, error) {
	s, err := openServer(ctx, a)
	if err != nil {
		return nil, err
	}
	p := &Part{server: s, all: true}
	query := fmt.Sprintf("SELECT %s, push FROM %s %s", names(runColumns), s.table("runs"), newestPush)
	kinds := append(kindsOf("runs", runColumns), parquet.Int)
	err = s.db.Select(ctx, query, kinds, func(v []*parquet.Values, rows int) error {
		b := &Batch{columns: v, Rows: rows}
		for i := range rows {
			r := b.run(i)
			r.push = b.Int(len(runColumns), i)
			p.Runs = append(p.Runs, r)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &Store{Dir: a.String(), Parts: []*Part{p}}, nil
}

// names are columns in SQL.
func names(columns []string) string {
	var out []string
	for _, c := range columns {
		out = append(out, clickhouse.Name(c))
	}
	return strings.Join(out, ", ")
}

func kindsOf(table string, columns []string) []parquet.Kind {
	schema := TableNamed(table)
	var out []parquet.Kind
	for _, name := range columns {
		out = append(out, schema.Columns[slices.IndexFunc(schema.Columns, func(c ColumnSchema) bool { return c.Name == name })].Kind)
	}
	return out
}

// pushes are the push numbers of the wanted runs, in portions that one query can name.
func (p *Part) pushes(wanted func(*Run) bool) [][]string {
	var all []string
	for i := range p.Runs {
		if r := &p.Runs[i]; wanted(r) {
			all = append(all, strconv.FormatInt(r.push, 10))
		}
	}
	return slices.Collect(slices.Chunk(all, mostNamed))
}

// ask reads the rows of some runs, in the order in which they were pushed.
func (p *Part) ask(table string, columns []string, wanted func(*Run) bool, see func(*Batch) error) error {
	s := p.server
	for _, some := range p.pushes(wanted) {
		query := fmt.Sprintf("SELECT %s FROM %s WHERE push IN (%s) ORDER BY push, `row`", names(columns), s.table(table), strings.Join(some, ", "))
		err := s.db.Select(s.ctx, query, kindsOf(table, columns), func(v []*parquet.Values, rows int) error {
			return see(&Batch{Part: p, Rows: rows, columns: v})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// summed are the leaks of some runs, which the server has summed up.
func (p *Part) summed(runs map[string]*Run) (map[string]*Leak, error) {
	s := p.server
	byPush := make(map[int64]*Run)
	for i := range p.Runs {
		byPush[p.Runs[i].push] = &p.Runs[i]
	}
	all := make(map[string]*Leak)
	for _, some := range p.pushes(func(r *Run) bool { return runs[r.ID] != nil }) {
		from := fmt.Sprintf("FROM %s WHERE verdict = 'leak' AND push IN (%s)", s.table("findings"), strings.Join(some, ", "))
		query := "SELECT push, fingerprint, toInt64(uniqExact(rank)), sum(growth_bytes), sum(rate_per_second), max(growth_bytes) " + from + " GROUP BY push, fingerprint"
		kinds := []parquet.Kind{parquet.Int, parquet.Text, parquet.Int, parquet.Int, parquet.Float, parquet.Int}
		err := s.db.Select(s.ctx, query, kinds, func(v []*parquet.Values, rows int) error {
			for i := range rows {
				run, name := byPush[v[0].Int(i)], v[1].Text(i)
				if run == nil {
					continue
				}
				l := all[name]
				if l == nil {
					l = &Leak{Fingerprint: name, perRun: make(map[string]*runLeak)}
					all[name] = l
				}
				l.perRun[run.ID] = &runLeak{ranks: v[2].Int(i), growth: v[3].Int(i), rate: v[4].Float(i)}
				if next := (lead{part: p, run: run, growth: v[5].Int(i)}); next.before(l.lead) {
					l.lead = next
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		query = fmt.Sprintf("SELECT fingerprint, %s AS step, toInt64(count()), max(rate_per_second) %s GROUP BY fingerprint, step", stepInSQL("rate_per_second"), from)
		kinds = []parquet.Kind{parquet.Text, parquet.Int, parquet.Int, parquet.Float}
		err = s.db.Select(s.ctx, query, kinds, func(v []*parquet.Values, rows int) error {
			for i := range rows {
				if l := all[v[0].Text(i)]; l != nil {
					l.rates.put(v[1].Int(i), v[2].Int(i), v[3].Float(i))
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// leads reads the largest finding of each leak.
func (p *Part) leads(leaks []Leak, columns []string, see func(i int, b *Batch, row int)) error {
	s := p.server
	type key struct {
		push        int64
		fingerprint string
	}
	wanted := make(map[key][]int)
	for i := range leaks {
		k := key{leaks[i].lead.run.push, leaks[i].Fingerprint}
		wanted[k] = append(wanted[k], i)
	}
	keys := make([]key, 0, len(wanted))
	for k := range wanted {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.push, b.push), cmp.Compare(a.fingerprint, b.fingerprint))
	})
	for len(keys) > 0 {
		var pushes, prints []string
		for size := 0; len(keys) > 0 && len(pushes) < mostNamed && size < mostNamedBytes; keys = keys[1:] {
			pushes, prints = append(pushes, strconv.FormatInt(keys[0].push, 10)), append(prints, clickhouse.Text(keys[0].fingerprint))
			size += len(keys[0].fingerprint)
		}
		query := fmt.Sprintf("SELECT %s, push, fingerprint FROM %s WHERE verdict = 'leak' AND push IN (%s) AND fingerprint IN (%s) ORDER BY growth_bytes DESC, `row` LIMIT 1 BY push, fingerprint",
			names(columns), s.table("findings"), strings.Join(pushes, ", "), strings.Join(prints, ", "))
		kinds := append(kindsOf("findings", columns), parquet.Int, parquet.Text)
		err := s.db.Select(s.ctx, query, kinds, func(v []*parquet.Values, rows int) error {
			b := &Batch{Part: p, Rows: rows, columns: v}
			for row := range rows {
				for _, i := range wanted[key{b.Int(len(columns), row), b.Text(len(columns)+1, row)}] {
					see(i, b, row)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// holders counts on how many ranks of some runs each holds a leak.
func (p *Part) holders(fingerprint string, wanted func(*Run) bool, held map[Held]int) error {
	s := p.server
	for _, some := range p.pushes(wanted) {
		query := fmt.Sprintf("SELECT kind, holder, toInt64(count()) FROM %s WHERE fingerprint = %s AND push IN (%s) GROUP BY kind, holder",
			s.table("holders"), clickhouse.Text(fingerprint), strings.Join(some, ", "))
		err := s.db.Select(s.ctx, query, []parquet.Kind{parquet.Text, parquet.Text, parquet.Int}, func(v []*parquet.Values, rows int) error {
			for i := range rows {
				held[Held{Kind: v[0].Text(i), Holder: v[1].Text(i)}] += int(v[2].Int(i))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
