package metrics

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"pgregory.net/rapid"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/budget"
	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
)

var update = flag.Bool("update", false, "rewrite golden files")

var noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// looked is a run on one GPU with a leak, a site in doubt, and two loader workers of which one has ended.
func looked(t *testing.T) Look {
	t.Helper()
	run := &snapshot.Run{Info: snapshot.Info{SchemaVersion: 1, Host: "node7", Version: "v1.2.3", Started: noon}}
	for i := range 3 {
		s := &snapshot.Snapshot{Mark: snapshot.Mark{Step: 50 * int64(i), Time: noon.Add(time.Duration(i) * 10 * time.Second)}}
		held := snapshot.Bytes(i+1) * snapshot.GiB
		s.Devices = []snapshot.Device{
			{Kind: snapshot.CUDA, Limit: 80 * snapshot.GiB, Meters: snapshot.Meters{Requested: held, Allocated: held, Active: held, Reserved: 2 * held, Driver: 3 * held}},
			{Kind: snapshot.Process, Limit: snapshot.Unknown, Meters: snapshot.Meters{Requested: 5, Allocated: 6, Active: 7, Reserved: 8, Driver: 4 * snapshot.GiB}},
			{Kind: snapshot.Graph},
		}
		run.Snapshots = append(run.Snapshots, s)
	}
	tree := &snapshot.Tree{Processes: []snapshot.TreeProcess{{PID: 1, Role: "train.py"}, {PID: 2, Parent: 1, Role: "loader worker 0"}, {PID: 3, Parent: 1, Role: "loader worker 1"}}}
	for i := range 3 {
		at := noon.Add(time.Duration(i) * 10 * time.Second)
		for p := range tree.Processes {
			if p < 2 || i == 0 {
				tree.Processes[p].Points = append(tree.Processes[p].Points, snapshot.ProcessPoint{Time: at, Anonymous: snapshot.Bytes(p+1) * snapshot.MiB, PSS: snapshot.Unknown, OfOthers: snapshot.Unknown})
			}
		}
		tree.Host = append(tree.Host, snapshot.HostPoint{Time: at, Segments: 2, SegmentBytes: 4096, Group: snapshot.Group{Current: 9 << 30, Peak: 10 << 30, Limit: snapshot.Unknown, Anonymous: 5 << 30, Shared: 1 << 20, LimitReached: 3, Killed: 1}})
	}
	run.Tree = tree
	worker := func(pid int, role string) *snapshot.Run {
		s := &snapshot.Snapshot{Devices: []snapshot.Device{{Kind: snapshot.PythonHeap, Limit: snapshot.Unknown, Meters: snapshot.Meters{Allocated: 12 << 20, Driver: snapshot.Unknown}}}}
		return &snapshot.Run{PID: pid, Role: role, Snapshots: []*snapshot.Snapshot{s}}
	}
	run.Children = []*snapshot.Run{worker(2, "loader worker 0"), worker(3, "loader worker 1")} // of which one has ended
	finding := func(v diff.Verdict, function string, bytes snapshot.Bytes) diff.Finding {
		frames := []snapshot.Frame{{Function: function, File: "/repo/train.py", Line: 41}}
		return diff.Finding{
			Verdict: v, Headline: 0, Rate: diff.Rate{Unit: "step", Bytes: trend.Slope{Value: float64(bytes), N: 20}},
			Rows: []*diff.Row{{Frames: frames, Device: run.Snapshots[0].Devices[0], After: diff.Tally{Blocks: 9, Bytes: 100 * bytes}}},
		}
	}
	result := &diff.Result{First: run.Snapshots[0], Last: run.Snapshots[2], Findings: []diff.Finding{
		finding(diff.Leak, "keep", 512<<10), finding(diff.Leak, "keep", 1<<10), finding(diff.Inconclusive, "fill", 2<<20),
	}}
	result.Findings[0].RunsOut = &diff.Forecast{Step: 1100, Low: 1000, High: 1300, After: 200 * time.Second, AfterLow: 180 * time.Second, AfterHigh: 240 * time.Second}
	var budgets []budget.Budget
	for _, text := range []string{"cuda:0=2GiB", "nowhere=1GiB"} {
		b, err := budget.Parse(budget.Live, text)
		if err != nil {
			t.Fatal(err)
		}
		budgets = append(budgets, b)
	}
	return Look{Name: "my-run", Run: run, Rank: 3, Result: result, Budgets: budget.Check(run, budgets, 0), At: noon.Add(25 * time.Second), Took: 30 * time.Millisecond}
}

func text(t *testing.T, looks ...Look) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Text(&b, Of(looks...)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestMetricsOfALook(t *testing.T) {
	got := text(t, looked(t))
	file := filepath.Join("testdata", "look.prom.golden")
	if *update {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Error(d)
	}
}

func TestNamesKeepToPrometheusConventions(t *testing.T) {
	problems, err := promlint.New(bytes.NewReader(text(t, looked(t)))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestAVerdictThatIsNotYetSureIsNoLeak(t *testing.T) {
	l := looked(t)
	l.Leaks = func(*diff.Finding) bool { return false }
	got := string(text(t, l))
	for _, want := range []string{`memdiag_findings{host="node7",rank="3",run="my-run",verdict="leak"} 0`, `memdiag_findings{host="node7",rank="3",run="my-run",verdict="inconclusive"} 3`} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %s", want)
		}
	}
	for _, none := range []string{"until_full", "leaked_bytes_per_second"} {
		if strings.Contains(got, none) {
			t.Errorf("has %s", none)
		}
	}
}

func TestCountersThatAreLaterThanTheSnapshotCount(t *testing.T) {
	l := looked(t)
	l.Run.Series = &snapshot.Series{Devices: []snapshot.Device{{Kind: snapshot.CUDA}}, Points: []snapshot.Point{{
		Mark: snapshot.Mark{Step: 101}, Meters: []snapshot.Meters{{Allocated: 77, Driver: snapshot.Unknown}},
	}}}
	got := string(text(t, l))
	for _, want := range []string{
		`memdiag_allocated_bytes{device="cuda:0",host="node7",rank="3",role="",run="my-run"} 77`, `memdiag_steps_total{host="node7",rank="3",run="my-run"} 101`,
		`memdiag_driver_bytes{device="cuda:0",host="node7",rank="3",role="",run="my-run"} 9.663676416e+09`, // which snapshots alone have
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("lacks %s", want)
		}
	}
}

func TestRunsOfOneNameAreToldApart(t *testing.T) {
	l := looked(t)
	got := string(text(t, l, l))
	if strings.Count(got, "memdiag_run_info{") != 2 || !strings.Contains(got, `run="my-run (2)"`) {
		t.Error(got)
	}
}

func TestOfManySitesAndRolesTheLargestStand(t *testing.T) {
	l := looked(t)
	row := l.Result.Findings[0]
	l.Result.Findings = nil
	for i := range 200 {
		f := row
		one := *row.Rows[0]
		one.Frames = []snapshot.Frame{{Function: fmt.Sprint("f", i), File: "/repo/a.py", Line: i}}
		one.After.Bytes = snapshot.Bytes(i)
		f.Rows = []*diff.Row{&one}
		l.Result.Findings = append(l.Result.Findings, f)
		l.Run.Tree.Processes = append(l.Run.Tree.Processes, snapshot.TreeProcess{PID: 10 + i, Role: fmt.Sprintf("helper%dx", i), Points: []snapshot.ProcessPoint{{Time: noon.Add(20 * time.Second), Anonymous: 1 << 30}}})
		l.Run.Snapshots[2].Devices = append(l.Run.Snapshots[2].Devices, snapshot.Device{Kind: snapshot.CUDA, Index: i + 1})
	}
	got := string(text(t, l))
	for name, n := range map[string]int{"site_leaks{": mostSites, "processes{": mostRoles + 1, "allocated_bytes{": mostDevices} {
		if have := strings.Count(got, "\nmemdiag_"+name); have != n {
			t.Errorf("%d of %s, not %d", have, name, n)
		}
	}
	for _, want := range []string{`memdiag_sites_folded{host="node7",rank="3",run="my-run"} 190`, `a.py:199"`} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %s", want)
		}
	}
}

func TestHostileNamesMakeSafeLabels(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := looked(t)
		hostile := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
		l.Name, l.Run.Info.Host, l.Run.Info.Workload = hostile.Draw(rt, "name"), hostile.Draw(rt, "host"), hostile.Draw(rt, "workload")
		l.Run.Tree.Processes[0].Role = hostile.Draw(rt, "role")
		l.Run.Snapshots[2].Devices[0].Kind = snapshot.DeviceKind(hostile.Draw(rt, "device"))
		l.Result.Findings[0].Rows[0].Frames[0].File = hostile.Draw(rt, "file")
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(bytes.NewReader(text(t, l, l)))
		if err != nil {
			rt.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.Metric {
				for _, pair := range m.Label {
					v := pair.GetValue()
					if !utf8.ValidString(v) || utf8.RuneCountInString(v) > longestLabel || strings.ContainsAny(v, "\n\r\x1b") {
						rt.Errorf("%s: %q", f.GetName(), v)
					}
				}
			}
		}
	})
}

func TestLabelsAreBounded(t *testing.T) {
	for in, want := range map[string]string{
		"cuda:0": "cuda:0", "a\nb\x1b[31m\xff": "a?b?[31m?", "é": "é", "a\u202eb": "a?b",
		strings.Repeat("x", 1<<20) + "end": strings.Repeat("x", 59) + "…" + strings.Repeat("x", 56) + "end",
	} {
		if got := Label(in); got != want {
			t.Errorf("%.40q is %q, not %q", in, got, want)
		}
	}
}

func TestThePageIsWhatIsAskedFor(t *testing.T) {
	page := new(Page)
	server := httptest.NewServer(page.Handler())
	defer server.Close()
	get := func(accept string) (kind, body string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept", accept)
		response, err := server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		b, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatal(response.Status, err)
		}
		return response.Header.Get("Content-Type"), string(b)
	}
	if _, body := get(""); body != "" {
		t.Errorf("before the first look it is %q", body)
	}
	if err := page.Set(Of(looked(t))); err != nil {
		t.Fatal(err)
	}
	for accept, want := range map[string][]string{
		"": {"text/plain", "memdiag_steps_total{"},
		"application/openmetrics-text;version=1.0.0": {"application/openmetrics-text", "# TYPE memdiag_steps counter\n", "# EOF\n"},
	} {
		kind, body := get(accept)
		if !strings.HasPrefix(kind, want[0]) || slices.ContainsFunc(want[1:], func(s string) bool { return !strings.Contains(body, s) }) {
			t.Errorf("Accept %q: %s\n%s", accept, kind, body)
		}
	}
}
