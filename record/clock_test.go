//go:build unix

package record_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/pprof"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/memdiag/memdiag/record"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/files"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

// grow takes a MiB at a time, and touches it, for as long as the tests look on.
func grow() {
	var kept [][]byte
	for range 200 {
		b := make([]byte, 1<<20)
		for i := range b {
			b[i] = 1
		}
		kept = append(kept, b)
		time.Sleep(10 * time.Millisecond)
	}
	os.Exit(len(kept) - 200)
}

func TestAnyCommandHasSnapshotsOfItsProcesses(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("no /proc here")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("RECORD_TEST_GROW", "1")
	r := runOf(t, record.Options{}, self)
	if r.ExitCode != 0 || r.Snapshots < 3 || !r.noted("no Python process loaded the agent") || len(r.Unseen) > 0 {
		t.Fatalf("%+v", r.Outcome)
	}
	run, err := files.OpenRun(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	first, last := run.Snapshots[0], run.Snapshots[len(run.Snapshots)-1]
	if d := last.Devices[0]; d.Kind != "host" || d.Meters.Driver < d.Meters.Allocated {
		t.Errorf("the device is %+v", d)
	}
	site := func(s *snapshot.Snapshot) snapshot.Bytes { return s.Sites()[0].Bytes }
	if grown := site(last) - site(first); grown < 20<<20 {
		t.Errorf("its largest site grew by %s", grown)
	}
	if f := last.Stacks.Frames(last.Sites()[0].Stack)[0].Function; !strings.HasPrefix(f, "heap and other private memory of record") {
		t.Errorf("the site is %q", f)
	}
}

func TestSnapshotsOfTheHostGiveWayToAnAgent(t *testing.T) {
	r := runOf(t, record.Options{}, "sh", "-c", `sleep 1; exec "$0" "$@"`, python(t), script(t, leaky), "200")
	names, err := filepath.Glob(filepath.Join(r.dir, "snapshot_*.memdiag"))
	if err != nil || len(names) > 0 || r.Snapshots == 0 || len(r.Notes) > 0 {
		t.Errorf("%q beside %+v", names, r.Outcome)
	}
}

func TestTheAddressOfAHeapProfileIsCompleted(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"a port", ":6060", "http://localhost:6060/debug/pprof/heap?gc=1"},
		{"a host and a port", "db1:6060", "http://db1:6060/debug/pprof/heap?gc=1"},
		{"the page of all profiles", "https://db1/debug/pprof/", "https://db1/debug/pprof/heap?gc=1"},
		{"a path of the program's own", "http://db1:80/internal/heap", "http://db1:80/internal/heap?gc=1"},
		{"a query stays as it is", "http://db1:80/debug/pprof/heap?gc=0", "http://db1:80/debug/pprof/heap?gc=0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, err := record.ProfileURL(c.in); err != nil || got != c.want {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
		})
	}
	for _, bad := range []string{"ftp://db1", "http://", "file:///etc/passwd", "http://a b"} {
		if got, err := record.ProfileURL(bad); err == nil {
			t.Errorf("%q became %q", bad, got)
		}
	}
}

// attach records a server until it has so many snapshots.
func attach(t *testing.T, handler http.Handler, enough int) (*record.Outcome, string, error) {
	t.Helper()
	var served atomic.Int64 // a request that was aborted comes again by another connection
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if served.Add(1) > int64(enough) {
			panic(http.ErrAbortHandler) // the program has ended
		}
		handler.ServeHTTP(w, r)
	}))
	defer server.Close()
	out, err := rundir.Create(filepath.Join(t.TempDir(), "run"), snapshot.Info{})
	if err != nil {
		t.Fatal(err)
	}
	url, err := record.ProfileURL(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := record.Attach(t.Context(), out, url, 10*time.Millisecond)
	return outcome, out.Dir(), err
}

func TestHeapProfilesOfARunningProgramAreRecordedUntilItEnds(t *testing.T) {
	outcome, dir, err := attach(t, pprof.Handler("heap"), 5)
	if err != nil || outcome.Snapshots != 5 || len(outcome.Notes) > 0 {
		t.Fatalf("%+v, %v", outcome, err)
	}
	if run, err := files.OpenRun(dir); err != nil || len(run.Snapshots) != 5 {
		t.Errorf("%v, %v", run, err)
	}
}

func TestWhatIsNoHeapProfileIsNotRecorded(t *testing.T) {
	for _, c := range []struct {
		name, want string
		handler    http.HandlerFunc
	}{
		{"a page", "not a heap profile", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }},
		{"nothing", "not a heap profile", func(http.ResponseWriter, *http.Request) {}},
		{"a path that is not there", "404 Not Found; does the program import net/http/pprof?", http.NotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, _, err := attach(t, c.handler, 10); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}
