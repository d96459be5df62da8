package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/fleet/clickhouse"
	"github.com/memdiag/memdiag/fleet/parquet"
	"github.com/memdiag/memdiag/snapshot/heavytest"
)

// stage is when a server is killed.
type stage int

const (
	before stage = iota // it has anything
	amid                // it has stored the first of the rows, and has not read the last
	after               // it has confirmed all, which who pushes does not hear
)

// cutting passes requests on to a server, and kills one at an insertion into a table.
type cutting struct {
	t      *testing.T
	to     *clickhouseServer
	victim *clickhouseServer
	table  string // "" once it was done
	when   stage
}

func (c *cutting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	table := c.table
	if table == "" || !strings.Contains(r.URL.Query().Get("query"), "INSERT INTO `fleet`.`"+table+"_") {
		c.pass(w, r, body)
		return
	}
	c.table = ""
	switch c.when {
	case before:
		c.victim.kill()
		c.pass(w, r, body)
		return
	case amid:
		c.begin(table, r, body)
	case after:
		c.pass(httptest.NewRecorder(), r, body)
	}
	c.victim.kill()
	panic(http.ErrAbortHandler)
}

func (c *cutting) pass(w http.ResponseWriter, r *http.Request, body []byte) {
	answer, err := http.Post("http://"+c.to.http+"/?"+r.URL.RawQuery, "", bytes.NewReader(body))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer func() { _ = answer.Body.Close() }()
	w.WriteHeader(answer.StatusCode)
	_, _ = io.Copy(w, answer.Body)
}

// begin sends an insertion but for its end, and waits until the victim has stored some of it. A server reads 1 MiB at a time.
func (c *cutting) begin(table string, r *http.Request, body []byte) {
	had := c.victim.rows(table)
	to, err := net.Dial("tcp", c.to.http)
	if err != nil {
		c.t.Error(err)
		return
	}
	defer func() { _ = to.Close() }()
	// Blocks are stored as they come.
	settings := r.URL.RawQuery + "&min_insert_block_size_rows=1&min_insert_block_size_bytes=1"
	_, err = fmt.Fprintf(to, "POST /?%s HTTP/1.1\r\nHost: %s\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s", settings, c.to.http, len(body), body[:len(body)-5])
	if err != nil {
		c.t.Error(err)
	}
	if !eventually(c.t, func() bool { return c.victim.rows(table) > had }) {
		c.t.Errorf("nothing of %s was stored", table)
	}
}

// rows counts what a server itself stores of a table.
func (s *clickhouseServer) rows(table string) (n int) {
	answer, err := http.Post("http://"+s.http, "", strings.NewReader("SELECT count() FROM fleet."+table+"_stored"))
	if err != nil {
		s.t.Error(err)
		return 0
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = fmt.Fscan(answer.Body, &n)
	return n
}

// cutOff pushes, and has the server killed on the way, started again and pushed to again. The folder has larger runs each time.
func (c *cutting) cutOff(dir string, a *clickhouse.Address, table string, when stage) {
	c.t.Helper()
	for _, r := range two {
		r.ranks, r.growth, r.added = 3000+int(when), r.growth+3600*int64(when), time.Now()
		added(c.t, dir, r)
	}
	c.table, c.when = table, when
	_, err := Push(c.t.Context(), dir, a, func(int, int) {})
	if err == nil || c.table != "" {
		c.t.Fatalf("%s %d: %v", table, when, err)
	}
	if said := (*clickhouse.Error)(nil); errors.As(err, &said) && said.Hint() == "" {
		c.t.Errorf("%s %d: %v", table, when, err)
	}
	c.victim.again()
	if _, err := Push(c.t.Context(), dir, a, func(int, int) {}); err != nil {
		c.t.Fatal(err)
	}
}

// TestPushesAfterOneWhoseClockWasAheadHaveNumbersOfTheirOwn: all of them know the same last number.
func TestPushesAfterOneWhoseClockWasAheadHaveNumbersOfTheirOwn(t *testing.T) {
	last := time.Now().Add(time.Hour).UnixMicro()<<pushChance | (1<<pushChance - 1)
	numbers := make(map[int64]bool)
	for range 100 {
		n := pushNumber(last)
		if n <= last {
			t.Fatalf("%d is not above the last, %d", n, last)
		}
		numbers[n] = true
	}
	if len(numbers) < 50 { // of 1,024 by chance
		t.Errorf("100 pushes have %d numbers", len(numbers))
	}
}

func TestNothingIsLostAndNothingTwiceWhereAServerGoesAwayInMidInsert(t *testing.T) {
	heavytest.Skip(t, "a ClickHouse server is started four times")
	servers := startServers(t, 1)
	c := &cutting{t: t, to: servers[0], victim: servers[0]}
	proxy := httptest.NewServer(c)
	defer proxy.Close()
	a := addressOf(t, []string{strings.TrimPrefix(proxy.URL, "http://")}, "/fleet")
	initialized(t, a)
	dir := many(t)
	pushed(t, dir, a, Pushed{4, 0})
	c.cutOff(dir, a, "findings", amid)
	answersAsTheFolder(t, dir, a)
	c.cutOff(dir, a, "runs", before)
	answersAsTheFolder(t, dir, a)
	c.cutOff(dir, a, "runs", after)
	answersAsTheFolder(t, dir, a)

	// What counts nowhere goes after a day.
	for days, want := range []int{0, 0, 10} { // of two runs: three states that were replaced, two tries that were cut off
		got, err := CompactServer(t.Context(), a, time.Now().Add(time.Duration(days)*23*time.Hour))
		if err != nil || got != want {
			t.Errorf("%d days: %d pushes, %v", days, got, err)
		}
	}
	answersAsTheFolder(t, dir, a)
	ranks := len(want(t, dir))
	if !eventually(t, func() bool { return servers[0].rows("ranks") == ranks }) {
		t.Errorf("%d rows are left", servers[0].rows("ranks"))
	}
}

// want is all ranks of a folder.
func want(t *testing.T, dir string) (ranks []Rank) {
	t.Helper()
	s := opened(t, dir)
	for _, r := range s.Runs() {
		of, err := s.Ranks(r.ID)
		if err != nil {
			t.Fatal(err)
		}
		ranks = append(ranks, of...)
	}
	return ranks
}

func TestThreeShardsAnswerAsTheFolderThoughOneDies(t *testing.T) {
	heavytest.Skip(t, "it starts three ClickHouse servers")
	servers := startServers(t, 3)
	all := addressOf(t, hostsOf(servers), "/fleet?cluster=shards")

	var part *PartError
	if err := InitServer(t.Context(), all.Each()[0]); !errors.As(err, &part) {
		t.Errorf("one of three: %v", err)
	}
	initialized(t, all)
	for _, other := range []string{"/fleet", "/fleet?cluster=others"} {
		var refused *clickhouse.AddressError
		if err := InitServer(t.Context(), addressOf(t, hostsOf(servers[:1]), other)); !errors.As(err, &refused) {
			t.Errorf("tables of a cluster as %s: %v", other, err)
		}
	}

	dir := filepath.Join(t.TempDir(), "fleet")
	added(t, dir, two[0])
	pushed(t, dir, all, Pushed{1, 0})
	of := slices.IndexFunc(servers, func(s *clickhouseServer) bool { return s.rows("runs") == 1 }) // where this run belongs
	c := &cutting{t: t, to: servers[(of+1)%3], victim: servers[of]}
	proxy := httptest.NewServer(c)
	defer proxy.Close()
	a := addressOf(t, []string{strings.TrimPrefix(proxy.URL, "http://")}, "/fleet")
	for i := range 12 { // so that each shard has some
		added(t, dir, testRun{id: fmt.Sprintf("dddddddd%08d", i), commit: "c1", ranks: 3, prints: []string{"s1-a"}, growth: int64(3600 * i)})
	}
	c.cutOff(dir, a, "findings", amid)
	answersAsTheFolder(t, dir, a)
	c.cutOff(dir, a, "runs", before)
	answersAsTheFolder(t, dir, a)
	for i, one := range all.Each() { // each of them has all
		answersAsTheFolder(t, dir, one)
		if n := servers[i].rows("runs"); n == 0 {
			t.Errorf("shard %d has no run", i)
		}
	}

	// Runs may be added by any of them, and months are deleted on all.
	for i, one := range all.Each() {
		direct := testRun{id: fmt.Sprintf("eeeeeeee%08d", i), commit: "c2", ranks: 3, prints: []string{"s1-a"}, growth: 7200}
		added(t, dir, direct)
		if _, err := AddToServer(t.Context(), one, direct.tables()); err != nil {
			t.Fatal(err)
		}
	}
	answersAsTheFolder(t, dir, a)
	prunedAsTheFolder(t, dir, all, 17)

	// April has one run, which another shard does not delete.
	months, err := Months(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	of = slices.IndexFunc(servers, func(s *clickhouseServer) bool { return s.rows("runs") == 1 })
	if err := DropMonths(t.Context(), all.Each()[(of+1)%3], months); !errors.As(err, &part) {
		t.Errorf("months on a shard that was not named: %v", err)
	}
	if err := DropMonths(t.Context(), all, months); err != nil {
		t.Error(err)
	}

	// While a shard is down there is no answer in place of half of one.
	c.victim.kill()
	_, err = OpenServer(t.Context(), a)
	if said := (*clickhouse.Error)(nil); !errors.As(err, &said) || said.Hint() == "" {
		t.Errorf("a shard is down: %v", err)
	}
}

func TestAServerThatIsNotAsItShouldBe(t *testing.T) {
	servers := startServers(t, 1)
	hosts := hostsOf(servers)
	dir := many(t)
	a := addressOf(t, hosts, "/fleet")
	exec := func(statement string) {
		t.Helper()
		db, err := clickhouse.Open(t.Context(), a)
		if err == nil {
			err = db.Exec(t.Context(), statement)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	refused := func(what string, err error, want any) {
		t.Helper()
		if !errors.As(err, want) {
			t.Errorf("%s: %v", what, err)
		}
	}

	exec("CREATE DATABASE fleet")
	exec("CREATE TABLE fleet.runs (mine String) ENGINE = TinyLog")
	refused("another's table", InitServer(t.Context(), a), new(*TakenError))
	exec("DROP TABLE fleet.runs")
	initialized(t, a)

	// A cluster of another name binds nobody.
	var unknown *clickhouse.AddressError
	if err := InitServer(t.Context(), addressOf(t, hosts, "/mistaken?cluster=shrads")); !errors.As(err, &unknown) || !strings.Contains(err.Error(), "it knows gone, shards") {
		t.Errorf("%v", err)
	}
	refused("a cluster that is down", InitServer(t.Context(), addressOf(t, hosts, "/mistaken?cluster=gone")), new(*clickhouse.Error))
	initialized(t, addressOf(t, hosts, "/mistaken?cluster=shards"))

	// A column that came later is added; without it nothing is pushed.
	exec("ALTER TABLE fleet.findings_stored DROP COLUMN cause")
	_, err := Push(t.Context(), dir, a, func(int, int) {})
	refused("a column is missing", err, new(*clickhouse.Error))
	if said, ok := errors.AsType[*clickhouse.Error](err); ok && !strings.Contains(said.Hint(), "fleet init") {
		t.Errorf("%v: %s", err, said.Hint())
	}
	initialized(t, a)

	// So is a file that is cut short.
	file := filepath.Join(dir, "2026-03-04", two[0].id, "findings.parquet")
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, whole[:len(whole)-20], 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Push(t.Context(), dir, a, func(int, int) {})
	refused("a file is cut short", err, new(*parquet.FormatError))
	if err := os.WriteFile(file, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	pushed(t, dir, a, Pushed{4, 0})
	answersAsTheFolder(t, dir, a)

	// Fingerprints as long as texts may be are more than one query may name.
	long := testRun{id: "eeeeeeee00000001", commit: "c9", ranks: 1, growth: 3600}
	for i := range 80 {
		long.prints = append(long.prints, fmt.Sprintf("s1-%02d", i)+strings.Repeat("'", longest-5))
	}
	longs := filepath.Join(t.TempDir(), "fleet")
	added(t, longs, long)
	pushed(t, longs, a, Pushed{1, 0})
	s, err := OpenServer(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	changes, _, _, err := s.Compare("c9", "c1")
	if err != nil || len(changes) != 82 || changes[81].Place == "" {
		t.Errorf("%d changes: %v", len(changes), err)
	}

	dir = many(t) // without what was pushed from another folder
	exec("DROP DATABASE fleet")
	initialized(t, a)
	pushed(t, dir, a, Pushed{4, 0})
	guarded := func(password string) *clickhouse.Address {
		a, err := clickhouse.Parse(a.String(), func(name string) string {
			return map[string]string{"CLICKHOUSE_USER": "guarded", "CLICKHOUSE_PASSWORD": password}[name]
		})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	answersAsTheFolder(t, dir, guarded("it's <secret>"))
	_, err = OpenServer(t.Context(), guarded("wrong word"))
	refused("a wrong password", err, new(*clickhouse.Error))
	if strings.Contains(fmt.Sprint(err), "wrong word") {
		t.Errorf("the password is shown: %v", err)
	}

	exec("DROP TABLE fleet.findings_stored")
	if s, err = OpenServer(t.Context(), a); err == nil {
		_, err = s.Leaks(nil)
	}
	refused("a table is missing", err, new(*clickhouse.Error))
	if said, ok := errors.AsType[*clickhouse.Error](err); ok && !strings.Contains(said.Hint(), "fleet init") {
		t.Errorf("%v: %s", err, said.Hint())
	}

	exec("DROP TABLE fleet.memdiag_fleet")
	exec("CREATE VIEW fleet.memdiag_fleet AS SELECT toInt64(2) AS version, '' AS cluster")
	_, err = OpenServer(t.Context(), a)
	refused("another version", err, new(*VersionError))
	refused("another version", InitServer(t.Context(), a), new(*VersionError))
}

// TestTheQueriesOfTheDocsRunOnServers runs them on the views that init makes: all on a recent server, on an old one those that
// the page names.
func TestTheQueriesOfTheDocsRunOnServers(t *testing.T) {
	heavytest.Skip(t, "it starts two ClickHouse servers")
	page, err := os.ReadFile("../docs/queries.md")
	if err != nil {
		t.Fatal(err)
	}
	var queries []string
	for _, m := range regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		queries = append(queries, m[1])
	}
	dir := many(t)
	run := func(host string) (numbers []int, rows map[int]string) {
		a := addressOf(t, []string{host}, "/default")
		initialized(t, a)
		pushed(t, dir, a, Pushed{4, 0})
		rows = make(map[int]string)
		for i, query := range queries {
			answer, err := http.Post("http://"+host, "", strings.NewReader(strings.TrimRight(query, ";\n")+" FORMAT TSV"))
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			if answer.StatusCode == http.StatusOK && len(text) > 0 {
				numbers = append(numbers, i+1)
				rows[i+1] = string(text)
			}
		}
		return numbers, rows
	}
	recent, want := run(chdbServer(t))
	if len(recent) != 10 {
		t.Errorf("a recent server runs %v", recent)
	}
	old, got := run(startServers(t, 1)[0].http)
	if !slices.Equal(old, []int{6, 10}) {
		t.Errorf("an old server runs %v", old)
	}
	for _, i := range old {
		if got[i] != want[i] {
			t.Errorf("query %d: the old server says\n%s\nthe recent one\n%s", i, got[i], want[i])
		}
	}
}
