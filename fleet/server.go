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

// A fleet on ClickHouse is a copy of a folder's. Each table has
//
//	findings_stored  the rows, on each server
//	findings_all     Distributed over them, where there is a cluster
//	findings         a view for queries of people
//
// Each row has one column more than in the folder's table: the number of the push. Each try to push a run has its own number. The
// run's row in the table runs is inserted last, and the run's latest such row counts. So the rows of a push that was cut off count
// nowhere, and the rows of a push that was repeated count once. All rows of a run lie on one server.

// markView is the view by which a database is known to be a fleet.
const markView = "memdiag_fleet"

const (
	storedTable = "_stored"
	allTable    = "_all"
)

// Columns that tables have on a server only.
var serverColumns = []ColumnSchema{
	number("push", "which insertion of a run it is of"),
	number("row", "its place among the run's rows"),
	number("month", "when the run began, such as 202611"),
}

// pushColumns are all columns of a table on a server.
func pushColumns(t *TableSchema) []ColumnSchema { return slices.Concat(t.Columns, serverColumns) }

// newestPush keeps one row a run.
const newestPush = "ORDER BY push DESC LIMIT 1 BY run"

// server is the location of a store's tables if they are not in a folder.
type server struct {
	ctx     context.Context
	db      *clickhouse.Server
	cluster string
}

// ending is the ending of the name of a table that spans all servers.
func (s *server) ending() string {
	if s.cluster != "" {
		return allTable
	}
	return storedTable
}

// table is such a table in SQL.
func (s *server) table(name string) string { return s.named(name + s.ending()) }

func (s *server) named(name string) string {
	return clickhouse.Name(s.db.Address.Database) + "." + clickhouse.Name(name)
}

// mark reads the version of a database's tables, and their cluster; found reports whether the database is a fleet.
func (s *server) mark() (version int64, cluster string, found bool, err error) {
	query := "SELECT version, cluster FROM " + s.named(markView)
	err = s.db.Select(s.ctx, query, []parquet.Kind{parquet.Int, parquet.Text}, func(v []*parquet.Values, _ int) error {
		version, cluster, found = v[0].Int(0), v[1].Text(0), true
		return nil
	})
	if clickhouse.Missing(err) {
		err = nil
	}
	return version, cluster, found, err
}

// checkVersion refuses tables of another version.
func (s *server) checkVersion(version int64) error {
	if version != Version {
		return &VersionError{s.db.Address.String(), strconv.FormatInt(version, 10)}
	}
	return nil
}

// count counts rows, in a query of its own: in a subquery, ClickHouse 18.16 sometimes returns 0 if a shard is down.
func (s *server) count(of string) (n int64, err error) {
	err = s.db.Select(s.ctx, "SELECT toInt64(count()) FROM "+of, []parquet.Kind{parquet.Int}, func(v []*parquet.Values, _ int) error {
		n = v[0].Int(0)
		return nil
	})
	return n, err
}

// has reports whether a table of the system's has such a row.
func (s *server) has(system, where string) (bool, error) {
	n, err := s.count("system." + system + " WHERE " + where)
	return n > 0, err
}

// InitServer makes the tables on each of the servers, and adds what those of an older memdiag lack. The database is marked as a fleet
// only when all servers have the tables, so that a wrong address leaves no fleet behind.
func InitServer(ctx context.Context, a *clickhouse.Address) error {
	var made []*server
	for _, one := range a.Each() {
		db, err := clickhouse.Open(ctx, one)
		if err != nil {
			return err
		}
		s := &server{ctx, db, a.Cluster}
		if err := s.init(); err != nil {
			return err
		}
		made = append(made, s)
	}
	for _, s := range made { // which asks all of its cluster
		if _, err := s.count(s.table("runs")); err != nil {
			if clickhouse.Missing(err) {
				return &PartError{a.Cluster, "without the tables"}
			}
			return err
		}
	}
	for _, s := range made {
		if err := s.setMark(); err != nil {
			return err
		}
	}
	return nil
}

// PartError says that not all servers of a cluster were named.
type PartError struct{ Cluster, Server string } // Server is what one is known by that was not

func (e *PartError) Error() string {
	return fmt.Sprintf("cluster %s has a server %s", e.Cluster, e.Server)
}

// Hint is the way out.
func (e *PartError) Hint() string {
	return "name all its servers in the address: '" + clickhouse.Scheme + "HOST,HOST,HOST/DATABASE?cluster=" + e.Cluster + "'"
}

// TakenError is a table of somebody else's.
type TakenError struct{ Database, Table string }

func (e *TakenError) Error() string {
	return fmt.Sprintf("database %s has a table %s that is not memdiag's", e.Database, e.Table)
}

// Hint is the way out.
func (e *TakenError) Hint() string {
	return "name a database of its own, which is made if it is missing"
}

func (s *server) init() error {
	database := s.db.Address.Database
	version, cluster, found, err := s.mark()
	if err == nil && found {
		if err = s.checkVersion(version); err == nil && cluster != "" && cluster != s.cluster {
			err = &clickhouse.AddressError{Reason: "its tables are those of cluster " + cluster + "; ?cluster=" + cluster + " says so"}
		}
	}
	if err == nil && s.cluster != "" {
		err = s.checkCluster()
	}
	if err != nil {
		return err
	}
	there, err := s.has("databases", "name = "+clickhouse.Text(database))
	if err == nil && !there {
		err = s.db.Exec(s.ctx, "CREATE DATABASE IF NOT EXISTS "+clickhouse.Name(database))
	}
	if err != nil {
		return err
	}
	views := []string{markView}
	for i := range Schema {
		views = append(views, Schema[i].Name)
	}
	for _, name := range views {
		taken, err := s.has("tables", fmt.Sprintf("database = %s AND name = %s AND engine != 'View'", clickhouse.Text(database), clickhouse.Text(name)))
		if err == nil && taken {
			err = &TakenError{database, name}
		}
		if err != nil {
			return err
		}
	}
	for i := range Schema {
		if cluster != s.cluster {
			if err := s.dropUnmarked(&Schema[i]); err != nil {
				return err
			}
		}
		if err := s.create(&Schema[i]); err != nil {
			return err
		}
	}
	return s.createViews()
}

// checkCluster refuses a cluster that the server does not know. Old servers make tables of such a one all the same.
func (s *server) checkCluster() error {
	var known []string
	err := s.db.Select(s.ctx, "SELECT DISTINCT cluster FROM system.clusters ORDER BY cluster", []parquet.Kind{parquet.Text}, func(v []*parquet.Values, rows int) error {
		for i := range rows {
			known = append(known, v[0].Text(i))
		}
		return nil
	})
	if err != nil || slices.Contains(known, s.cluster) {
		return err
	}
	return &clickhouse.AddressError{Reason: fmt.Sprintf("a server knows no cluster %s; it knows %s", s.cluster, cmp.Or(strings.Join(known, ", "), "none"))}
}

// dropUnmarked drops the table over all servers that an init with another cluster left, which ended half way. It has no rows itself.
func (s *server) dropUnmarked(t *TableSchema) error {
	left, err := s.has("tables", fmt.Sprintf("database = %s AND name = %s AND engine = 'Distributed' AND position(engine_full, %s) > 0",
		clickhouse.Text(s.db.Address.Database), clickhouse.Text(t.Name+allTable), clickhouse.Text(t.Name+storedTable)))
	if err != nil || !left {
		return err
	}
	return s.db.Exec(s.ctx, "DROP TABLE IF EXISTS "+s.named(t.Name+allTable))
}

// setMark marks the database as a fleet, unless it is marked so.
func (s *server) setMark() error {
	_, cluster, found, err := s.mark()
	if err != nil || found && cluster == s.cluster {
		return err
	}
	return s.view(markView, fmt.Sprintf("SELECT toInt64(%d) AS version, %s AS cluster", Version, clickhouse.Text(s.cluster)))
}

// create makes a table, or adds the columns that it lacks.
func (s *server) create(t *TableSchema) error {
	var columns []string
	for _, c := range pushColumns(t) {
		columns = append(columns, column(c))
	}
	stored := s.named(t.Name + storedTable)
	err := s.db.Exec(s.ctx, fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (%s) ENGINE = MergeTree() PARTITION BY month ORDER BY (push, `row`)", stored, strings.Join(columns, ", ")))
	if err == nil {
		err = s.complete(t, storedTable)
	}
	if err != nil || s.cluster == "" {
		return err
	}
	err = s.db.Exec(s.ctx, fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (%s) ENGINE = Distributed(%s, %s, %s, cityHash64(run))",
		s.named(t.Name+allTable), strings.Join(columns, ", "), clickhouse.Text(s.cluster), clickhouse.Text(s.db.Address.Database), clickhouse.Text(t.Name+storedTable)))
	if err == nil {
		err = s.complete(t, allTable)
	}
	return err
}

// column is a column's definition. The default is for rows that were inserted before it was added.
func column(c ColumnSchema) string {
	switch name := clickhouse.Name(c.Name); c.Kind {
	case parquet.Text:
		return name + " String"
	case parquet.Float:
		return name + " Float64"
	case parquet.Time:
		return name + " Int64"
	default:
		return name + " Int64 DEFAULT -1"
	}
}

// complete adds columns that came after a table was made.
func (s *server) complete(t *TableSchema, ending string) error {
	has := make(map[string]bool)
	query := fmt.Sprintf("SELECT name FROM system.columns WHERE database = %s AND table = %s", clickhouse.Text(s.db.Address.Database), clickhouse.Text(t.Name+ending))
	err := s.db.Select(s.ctx, query, []parquet.Kind{parquet.Text}, func(v []*parquet.Values, rows int) error {
		for i := range rows {
			has[v[0].Text(i)] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, c := range pushColumns(t) {
		if has[c.Name] {
			continue
		}
		if err := s.db.Exec(s.ctx, fmt.Sprintf("ALTER TABLE %s ADD COLUMN %s", s.named(t.Name+ending), column(c))); err != nil {
			return err
		}
	}
	return nil
}

// createViews makes the views for people.
func (s *server) createViews() error {
	exact, err := s.has("functions", "name = 'fromUnixTimestamp64Micro'")
	if err != nil {
		return err
	}
	for statement := range strings.SplitSeq(strings.TrimSuffix(clickHouseFunctions, ";\n"), ";\n") {
		if err := s.db.Exec(s.ctx, statement); clickhouse.NotUnderstood(err) {
			break // before 21.10 there are no functions in SQL; only the queries of docs/queries.md call them
		} else if err != nil {
			return err
		}
	}
	in := "IN"
	if s.cluster != "" {
		in = "GLOBAL IN"
	}
	for i := range Schema {
		t := &Schema[i]
		var columns []string
		for _, c := range t.Columns {
			name := clickhouse.Name(c.Name)
			switch {
			case c.Kind != parquet.Time:
				columns = append(columns, name)
			case exact:
				columns = append(columns, fmt.Sprintf("fromUnixTimestamp64Micro(%s, 'UTC') AS %s", name, name))
			default:
				columns = append(columns, fmt.Sprintf("toDateTime(intDiv(%s, 1000000), 'UTC') AS %s", name, name))
			}
		}
		from := fmt.Sprintf("%s WHERE push %s (SELECT push FROM (SELECT run, push FROM %s %s))", s.table(t.Name), in, s.table("runs"), newestPush)
		if t.Name == "runs" {
			from = fmt.Sprintf("(SELECT * FROM %s %s)", s.table("runs"), newestPush)
		}
		if err := s.view(t.Name, "SELECT "+strings.Join(columns, ", ")+" FROM "+from); err != nil {
			return err
		}
	}
	return nil
}

// view makes a view, replacing an existing one.
func (s *server) view(name, query string) error {
	if err := s.db.Exec(s.ctx, "DROP TABLE IF EXISTS "+s.named(name)); err != nil {
		return err
	}
	return s.db.Exec(s.ctx, "CREATE VIEW "+s.named(name)+" AS "+query)
}

// openServer finds the fleet on a server.
func openServer(ctx context.Context, a *clickhouse.Address) (*server, error) {
	db, err := clickhouse.Open(ctx, a)
	if err != nil {
		return nil, err
	}
	s := &server{ctx: ctx, db: db}
	version, cluster, found, err := s.mark()
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, &NoServerFleetError{a}
	}
	if err := s.checkVersion(version); err != nil {
		return nil, err
	}
	s.cluster = cluster
	return s, nil
}

// NoServerFleetError is a database without a fleet.
type NoServerFleetError struct{ Address *clickhouse.Address }

func (e *NoServerFleetError) Error() string {
	return e.Address.String() + ": there is no fleet in this database"
}

// Hint is the way out.
func (e *NoServerFleetError) Hint() string {
	return "memdiag fleet init --to '" + e.Address.String() + "' makes its tables; memdiag fleet push --to fills them"
}
