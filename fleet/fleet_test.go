package fleet

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var epoch = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// testRun is a run of the tests: on each rank one leak for each of its prints.
type testRun struct {
	id, commit, status string
	started, added     time.Time
	ranks              int
	prints             []string
	growth             int64 // of each leak on each rank
}

func (r testRun) tables() Tables {
	t := NewTables()
	if r.status == "" {
		r.status = "ended"
	}
	if r.added.IsZero() {
		r.added = epoch.Add(24 * time.Hour)
	}
	if r.started.IsZero() {
		r.started = epoch
	}
	t["runs"].Append(r.id, "name-"+r.id, "/runs/"+r.id, r.added, r.started, r.started.Add(time.Hour), r.status, 0, "python train.py", "", r.commit, "PyTorch 2.15.0", "test",
		r.ranks, 1, r.ranks, 1000, 3600., "leak", len(r.prints)*r.ranks, 1<<30, r.growth)
	for rank := range r.ranks {
		t["ranks"].Append(r.id, rank, "h", "cuda:0", -1, -1, "leak", len(r.prints), 5, 0, 1000, 1<<30, r.growth, 1<<30, 1<<30, 80<<30, float64(r.growth)/1000, float64(r.growth)/3600, 5000, r.started.Add(5*time.Hour))
		for _, print := range r.prints {
			t["findings"].Append(r.id, rank, print, "00000000000000aa", "cuda:0", "train.py:"+print[3:4], "", "leak", "strong", "step", float64(r.growth)/1000, 0., 0., float64(r.growth)/3600, r.growth, 1000, r.growth, "cause", -1, time.Time{})
			t["holders"].Append(r.id, rank, print, "list", "losses", 5)
		}
		t["findings"].Append(r.id, rank, "s1-b", "bb", "cuda:0", "cache.py:1", "", "bounded", "strong", "step", 0., 0., 0., 0., int64(1<<40), 1, 1, "", -1, time.Time{})
	}
	t["frames"].Append(r.id, "00000000000000aa", 0, "update", "/me/train.py", 31)
	return t
}

func added(t *testing.T, dir string, runs ...testRun) {
	t.Helper()
	for _, r := range runs {
		if _, err := Add(dir, r.tables()); err != nil {
			t.Fatal(err)
		}
	}
}

func opened(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := OpenStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// summary is what Leaks says, a line each.
func summary(t *testing.T, s *Store) string {
	t.Helper()
	text, err := asText(s)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func asText(s *Store) (string, error) {
	leaks, err := s.Leaks(nil)
	if err == nil {
		err = s.Name(leaks)
	}
	if err != nil {
		return "", err
	}
	var out []string
	for _, l := range leaks {
		out = append(out, fmt.Sprintf("%s %s runs %d ranks %d leaked %d lost %.0f %s-%s", l.Fingerprint, l.Place, l.Runs, l.Ranks, l.Leaked, l.GPUHours, l.FirstCommit, l.LastCommit))
	}
	return strings.Join(out, "\n"), nil
}

var two = []testRun{
	{id: "aaaaaaaa00000001", commit: "c1", ranks: 4, prints: []string{"s1-a", "s1-c"}, growth: 3600},
	{id: "aaaaaaaa00000002", commit: "c2", ranks: 2, prints: []string{"s1-a"}, growth: 7200, status: OutOfMemory, started: epoch.Add(time.Hour)},
}

const ofTwo = `s1-a train.py:a runs 2 ranks 6 leaked 28800 lost 2 c1-c2
s1-c train.py:c runs 1 ranks 4 leaked 14400 lost 0 c1-c1`

func TestLeaksOfSeveralRunsAreJoinedByFingerprint(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fleet")
	added(t, dir, two...)
	if got := summary(t, opened(t, dir)); got != ofTwo {
		t.Errorf("got\n%s\nwant\n%s", got, ofTwo)
	}
}

func TestARunThatIsAddedAgainCountsOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fleet")
	added(t, dir, two...)
	added(t, dir, two...)
	moved := two[0]
	moved.started = moved.started.Add(30 * 24 * time.Hour) // its clock was set right, say
	moved.added = moved.started.Add(time.Hour)
	added(t, dir, moved)
	s := opened(t, dir)
	if len(s.Parts) != 2 || len(s.Runs()) != 2 {
		t.Errorf("%d parts, %d runs", len(s.Parts), len(s.Runs()))
	}
}

func TestCompactedRunsAreWhatTheyWere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fleet")
	added(t, dir, two...)
	c, err := Compact(dir, epoch)
	if err != nil {
		t.Fatal(err)
	}
	if c.Before != 2 || c.After != 1 {
		t.Errorf("%+v", c)
	}
	if got := summary(t, opened(t, dir)); got != ofTwo {
		t.Errorf("got\n%s", got)
	}
	added(t, dir, two[1]) // it leaves the merged part
	s := opened(t, dir)
	if got := summary(t, s); got != ofTwo || len(s.Parts) != 2 {
		t.Errorf("%d parts\n%s", len(s.Parts), got)
	}
}

func TestARunInTwoPlacesCountsOnce(t *testing.T) { // while another process merges
	dir := filepath.Join(t.TempDir(), "fleet")
	added(t, dir, two...)
	place := filepath.Join(dir, "2026-03-04", two[0].id)
	aside := filepath.Join(t.TempDir(), "aside")
	if err := os.CopyFS(aside, os.DirFS(place)); err != nil {
		t.Fatal(err)
	}
	if _, err := Compact(dir, epoch); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(place, os.DirFS(aside)); err != nil {
		t.Fatal(err)
	}
	if got := summary(t, opened(t, dir)); got != ofTwo {
		t.Errorf("got\n%s", got)
	}
}

func TestWritersAtOnceDoNoHarm(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fleet")
	if err := eachOf(24, func(i int) error { return second(Add(dir, two[i%2].tables())) }); err != nil {
		t.Fatal(err)
	}
	if got := summary(t, opened(t, dir)); got != ofTwo {
		t.Errorf("got\n%s", got)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("left behind: %v %v", entries, err)
	}
}

func TestWhatAWriterThatDiedLeftIsNoRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fleet")
	added(t, dir, two...)
	half, err := writePart(dir, two[0].tables())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(half, "findings"+ending)); err != nil {
		t.Fatal(err)
	}
	if got := summary(t, opened(t, dir)); got != ofTwo {
		t.Errorf("got\n%s", got)
	}
	if _, err := Compact(dir, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(half); err != nil {
		t.Errorf("it was removed while its writer may live: %v", err)
	}
	if _, err := Compact(dir, time.Now().Add(25*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(half); err == nil {
		t.Error("it is still there a day after")
	}
}

func TestATableThatIsCutShortIsNamedAndReplaced(t *testing.T) {
	for _, table := range []string{"findings", "runs"} {
		dir := filepath.Join(t.TempDir(), "fleet")
		added(t, dir, two...)
		path := filepath.Join(dir, "2026-03-04", two[1].id, table+ending)
		if err := os.Truncate(path, 100); err != nil {
			t.Fatal(err)
		}
		s, err := OpenStore(dir)
		if err == nil {
			_, err = s.Leaks(nil)
		}
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: the error is %v", table, err)
		}
		added(t, dir, two[1])
		if got := summary(t, opened(t, dir)); got != ofTwo {
			t.Errorf("%s: after it was added again\n%s", table, got)
		}
	}
}

func TestTheDamageOfAMergedFolderIsInNoOtherRunsWay(t *testing.T) {
	for _, table := range []string{"findings", "runs"} {
		dir := filepath.Join(t.TempDir(), "fleet")
		added(t, dir, two...)
		if _, err := Compact(dir, epoch); err != nil {
			t.Fatal(err)
		}
		folder := opened(t, dir).Parts[0].dir
		if err := os.Truncate(filepath.Join(folder, table+ending), 0); err != nil {
			t.Fatal(err)
		}
		for _, run := range two { // which repairs it, but for the table of runs
			run.added = epoch.Add(48 * time.Hour)
			added(t, dir, run)
		}
		if table == "runs" {
			if err := os.RemoveAll(folder); err != nil {
				t.Fatal(err)
			}
		}
		if got := summary(t, opened(t, dir)); got != ofTwo {
			t.Errorf("%s: after they were added again\n%s", table, got)
		}
		if _, err := Compact(dir, epoch); err != nil {
			t.Errorf("%s: %v", table, err)
		}
	}
}

func TestARunThatIsAddedAgainWithoutItsCommitKeepsIt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fleet")
	run := two[0]
	added(t, dir, run)
	if _, err := Compact(dir, epoch); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ commit, want string }{{"", "c1"}, {"c9", "c9"}} {
		run.commit = c.commit
		added(t, dir, run)
		if runs := opened(t, dir).Runs(); len(runs) != 1 || runs[0].Commit != c.want {
			t.Errorf("%+v, want %s", runs, c.want)
		}
	}
}

func TestARunOfWhichThereIsLessIsTold(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fleet")
	run := two[0]
	for _, c := range []struct {
		ranks int
		want  string
	}{{4, ""}, {4, ""}, {3, "the fleet had 4 ranks of it"}, {5, ""}} {
		run.ranks = c.ranks
		tables := run.tables()
		before, err := Add(dir, tables)
		if got := tables.Less(before); err != nil || got != c.want {
			t.Errorf("%d ranks: %q, %v; want %q", c.ranks, got, err, c.want)
		}
	}
}

// A merge reads a run, which is then added anew: the merge must not remove what it has not read.
func TestWhatWasReplacedMeanwhileIsNotRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fleet")
	added(t, dir, two...)
	read := opened(t, dir)
	added(t, dir, two[1])
	for _, p := range read.Parts {
		if p.Name == two[1].id {
			if err := p.remove(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := summary(t, opened(t, dir)); got != ofTwo {
		t.Errorf("after a merge that read it before\n%s", got)
	}
}

func TestARateOfAnySizeIsCounted(t *testing.T) {
	var h histogram
	for _, rate := range []float64{0, 1, 1e300, math.MaxFloat64, math.Inf(1)} {
		h.add(rate)
	}
	if h.n != 5 || h.counts[len(h.counts)-1] != 3 {
		t.Errorf("%d counted, %d of them large", h.n, h.counts[len(h.counts)-1])
	}
}

func TestARunIsStoredUnderItsDayUnlessItsClockWasOff(t *testing.T) {
	for name, c := range map[string]struct {
		started time.Time
		day     string
	}{
		"as it began":           {epoch, "2026-03-04"},
		"a clock at its start":  {time.Unix(60, 0), "2026-03-05"},
		"a clock in the future": {epoch.AddDate(30, 0, 0), "2026-03-05"},
		"no time":               {time.Time{}, "2026-03-05"},
	} {
		run := two[0]
		run.started = c.started
		tables := run.tables()
		if c.started.IsZero() {
			tables["runs"].Columns[4].Ints[0] = 0
		}
		if got := dayOf(tables); got != c.day {
			t.Errorf("%s: %s, want %s", name, got, c.day)
		}
		shown := &Run{Started: c.started, Added: epoch.Add(24 * time.Hour)}
		if got := dayText(shown.When()); got != c.day {
			t.Errorf("%s: %s is shown, want %s", name, got, c.day)
		}
	}
}

func TestAFleetOfAnotherVersionIsRefused(t *testing.T) {
	dir := t.TempDir()
	mark := filepath.Join(dir, markName)
	if err := os.WriteFile(mark, []byte("memdiag fleet, tables of version 2; more\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{"open": second(OpenStore(dir)), "add": second(Add(dir, two[0].tables()))} {
		if !errors.As(err, new(*VersionError)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestAFolderOfSomethingElseIsNoFleet(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.tex"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Add(dir, two[0].tables()); err == nil {
		t.Error("a run was added among other files")
	}
	if _, err := OpenStore(dir); !errors.As(err, new(*NoFleetError)) {
		t.Error(err)
	}
}

func TestPruneTakesWholeDaysThatAreOlder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fleet")
	late := two[1]
	late.started, late.added = epoch.AddDate(0, 0, 10), epoch.AddDate(0, 0, 10)
	added(t, dir, two[0], late)
	s := opened(t, dir)
	now := epoch.AddDate(0, 0, 12)
	if old := s.Old(now, 90*24*time.Hour); len(old) != 0 {
		t.Errorf("%d are older than 90 days", len(old))
	}
	old := s.Old(now, 5*24*time.Hour)
	if len(old) != 1 || old[0].Runs[0].ID != two[0].id {
		t.Fatalf("%v", old)
	}
	if err := s.Remove(old); err != nil {
		t.Fatal(err)
	}
	if runs := opened(t, dir).Runs(); len(runs) != 1 || runs[0].ID != late.id {
		t.Errorf("left: %v", runs)
	}
	if _, err := os.Stat(filepath.Join(dir, "2026-03-04")); err == nil {
		t.Error("its empty day is still there")
	}
}

func TestCompareSaysWhatAFixSavedAndWhatIsNew(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fleet")
	added(t, dir, two...)
	changes, before, after, err := opened(t, dir).Compare("c1", "c2")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range changes {
		got = append(got, fmt.Sprint(c.Fingerprint, " ", c.State, " ", c.Saved))
	}
	// Each rank of c1 leaks 1 B/s at both places; the two of c2 ran for an hour.
	want := "[s1-a worse -7200 s1-c not judged 0]" // the run of c2 ran out of memory
	if fmt.Sprint(got) != want || before != 1 || after != 1 {
		t.Errorf("%v, want %s; %d and %d runs", got, want, before, after)
	}
}

func TestTheNextToDieIsAnUnfinishedRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fleet")
	going := two[0]
	going.id, going.status = "bbbbbbbb00000001", "unfinished"
	added(t, dir, two[0], going)
	next, err := opened(t, dir).Next()
	if err != nil || len(next) != 1 || next[0].Run.ID != going.id || next[0].Step != 5000 {
		t.Errorf("%+v %v", next, err)
	}
}

func TestDetailHasStackAndHolders(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fleet")
	added(t, dir, two...)
	d, err := opened(t, dir).Detail("s1-a")
	if err != nil || d == nil {
		t.Fatal(d, err)
	}
	if fmt.Sprint(d.Frames) != "[/me/train.py:31 in update]" || fmt.Sprint(d.Holders) != "[{list losses 6}]" || len(d.In) != 2 {
		t.Errorf("%v %v %v", d.Frames, d.Holders, d.In)
	}
}

// fleetOfRanks are slopes with noise; the ranks for which leaks is true grow more.
func fleetOfRanks(random *rand.Rand, n int, more float64, leaks func(r *Rank) bool) []Rank {
	mesh := Mesh{{"pp", 4}, {"dp", n / 8}, {"tp", 2}}
	var out []Rank
	for i := range n {
		stage, replica := mesh.Of(i)
		r := Rank{Rank: int64(i), Host: fmt.Sprint("node", i/8), Stage: int64(stage), Replica: int64(replica), Slope: 1000 + 100*random.NormFloat64()}
		if leaks(&r) {
			r.Slope += more
		}
		out = append(out, r)
	}
	return out
}

func TestTheSmallestGroupThatExplainsIsNamed(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		want  string
		leaks func(r *Rank) bool
	}{
		{"rank 13", func(r *Rank) bool { return r.Rank == 13 }},
		{"host node3", func(r *Rank) bool { return r.Host == "node3" }},
		{"stage 2", func(r *Rank) bool { return r.Stage == 2 }},
		{"replica 5", func(r *Rank) bool { return r.Replica == 5 }},
	} {
		groups := Unlike(fleetOfRanks(random, 64, 1000, c.leaks))
		if len(groups) != 1 || groups[0].Name != c.want {
			t.Errorf("%s: %+v", c.want, groups)
		}
	}
	if groups := Unlike(fleetOfRanks(random, 64, 0, func(*Rank) bool { return false })); len(groups) > 0 {
		t.Errorf("ranks that are alike: %+v", groups)
	}
	all := fleetOfRanks(random, 64, 0, func(*Rank) bool { return false })
	for i := range all {
		all[i].Verdict = "leak"
	}
	if groups := Unlike(all); len(groups) != 1 || groups[0].Kind != "all" {
		t.Errorf("all leak: %+v", groups)
	}
}

func TestMeshNumbersRanksAsLaunchersDo(t *testing.T) {
	m, err := ParseMesh("pp=4,dp=8,tp=2")
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	for _, rank := range []int{0, 1, 2, 16, 63, -1} {
		stage, replica := m.Of(rank)
		got = append(got, stage, replica)
	}
	if want := []int{0, 0, 0, 0, 0, 1, 1, 0, 3, 7, -1, -1}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, bad := range []string{"", "pp", "pp=0", "pp=x", "=3", "pp=4,", "pp=2,pp=4"} {
		if _, err := ParseMesh(bad); err == nil {
			t.Errorf("%q is a mesh", bad)
		}
	}
}

func TestQuantilesAreNear(t *testing.T) {
	var h histogram
	for i := 1; i <= 1000; i++ {
		h.add(float64(i) * 1000)
	}
	for q, want := range map[float64]float64{0.5: 500e3, 0.9: 900e3, 1: 1000e3} {
		if got := h.quantile(q); got < 0.95*want || got > 1.05*want {
			t.Errorf("%g: %g, want %g", q, got, want)
		}
	}
}
