package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/memdiag/memdiag/fleet/clickhouse"
	"github.com/memdiag/memdiag/fleet/parquet"
)

// Month is what a fleet on servers has of the runs that began in a month: a partition of each table.
type Month struct {
	Number int64 // such as 202611
	Runs   int   // that count
	Bytes  int64 // on all servers, with what counts nowhere
}

// String is the month as dates have it.
func (m Month) String() string { return fmt.Sprintf("%04d-%02d", m.Number/100, m.Number%100) }

// Months are all months of a fleet on servers, the first one first. Sizes are of the servers in the address.
func Months(ctx context.Context, a *clickhouse.Address) ([]Month, error) {
	s, err := openServer(ctx, a)
	if err != nil {
		return nil, err
	}
	all := make(map[int64]*Month)
	of := func(number int64) *Month {
		if all[number] == nil {
			all[number] = &Month{Number: number}
		}
		return all[number]
	}
	query := fmt.Sprintf("SELECT run, month FROM %s %s", s.table("runs"), newestPush)
	err = s.db.Select(ctx, query, []parquet.Kind{parquet.Text, parquet.Int}, func(v []*parquet.Values, rows int) error {
		for i := range rows {
			of(v[1].Int(i)).Runs++
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	query = fmt.Sprintf("SELECT toInt64(partition), toInt64(sum(bytes_on_disk)) FROM system.parts WHERE active AND database = %s AND table IN (%s) GROUP BY partition",
		clickhouse.Text(a.Database), storedNames())
	for _, one := range a.Each() {
		s, err := openServer(ctx, one)
		if err != nil {
			return nil, err
		}
		err = s.db.Select(ctx, query, []parquet.Kind{parquet.Int, parquet.Int}, func(v []*parquet.Values, rows int) error {
			for i := range rows {
				of(v[0].Int(i)).Bytes += v[1].Int(i)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	var months []Month
	for _, m := range all {
		months = append(months, *m)
	}
	slices.SortFunc(months, func(a, b Month) int { return cmp.Compare(a.Number, b.Number) })
	return months, nil
}

// storedNames are the tables with rows, as a list in SQL.
func storedNames() string {
	var names []string
	for i := range Schema {
		names = append(names, clickhouse.Text(Schema[i].Name+storedTable))
	}
	return strings.Join(names, ", ")
}

// Before reports whether the whole month ended longer ago than keep.
func (m Month) Before(now time.Time, keep time.Duration) bool {
	limit := now.Add(-keep).UTC()
	return m.Number < int64(limit.Year()*100+int(limit.Month()))
}

// DropMonths deletes months on each of the servers. The table runs is the first on all: rows of a run that is not there count
// nowhere, so that a deletion that was cut off leaves no half of a run, and can be repeated. Of a cluster that was named in part, the
// months stay on the other servers: a PartError says so.
func DropMonths(ctx context.Context, a *clickhouse.Address, months []Month) error {
	var servers []*server
	for _, one := range a.Each() {
		s, err := openServer(ctx, one)
		if err != nil {
			return err
		}
		servers = append(servers, s)
	}
	tables := []string{"runs"}
	for i := range Schema {
		if name := Schema[i].Name; name != "runs" {
			tables = append(tables, name)
		}
	}
	for _, table := range tables {
		for _, s := range servers {
			for _, m := range months {
				if err := s.db.Exec(ctx, fmt.Sprintf("ALTER TABLE %s DROP PARTITION %d", s.named(table+storedTable), m.Number)); err != nil {
					return err
				}
			}
		}
	}
	return servers[0].checkDropped(months)
}

// checkDropped asks all servers of a cluster whether runs of months are left.
func (s *server) checkDropped(months []Month) error {
	if s.cluster == "" || len(months) == 0 {
		return nil
	}
	var numbers []string
	for _, m := range months {
		numbers = append(numbers, strconv.FormatInt(m.Number, 10))
	}
	left, err := s.count(s.table("runs") + " WHERE month IN (" + strings.Join(numbers, ", ") + ")")
	if err == nil && left > 0 {
		err = &PartError{s.cluster, "that still has runs of these months"}
	}
	return err
}
