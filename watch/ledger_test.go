package watch

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
)

func alarm(kind report.LiveKind, fingerprint, device, process string) report.Live {
	return report.Live{
		Kind: kind, Time: time.Unix(1000, 0), Run: &snapshot.Run{Path: "my-run"}, Rank: snapshot.NoRank, Said: "something",
		Fingerprint: fingerprint, Device: device, Process: process,
	}
}

// TestAnAlarmIsAnnouncedOnce has a watch begin again: it announces what is new, and the end of what was announced before.
func TestAnAlarmIsAnnouncedOnce(t *testing.T) {
	folder, run := t.TempDir(), t.TempDir()
	var out bytes.Buffer
	began := time.Unix(500, 0)
	watched := func(began time.Time, events ...report.Live) string {
		out.Reset()
		ledger, err := OpenLedger(folder, run, began)
		if err != nil {
			t.Fatal(err)
		}
		d := NewDeliverer([]Receiver{Command{Line: "cat", Output: &out}}, ledger, func(what string) { t.Error(what) })
		for _, e := range events {
			d.Deliver(e, report.Folder{})
		}
		d.Close(time.Minute)
		var heard []string
		for line := range strings.Lines(out.String()) {
			for _, device := range []string{"cuda:0", "cuda:1"} {
				if strings.Contains(line, device) {
					heard = append(heard, device)
				}
			}
		}
		return strings.Join(heard, " ")
	}
	zero, one := alarm(report.LiveLeak, "s1-a", "cuda:0", ""), alarm(report.LiveLeak, "s1-a", "cuda:1", "")
	worker := alarm(report.LiveLeak, "s1-a", "cuda:1", "loader worker")
	if got := watched(began, zero, zero); got != "cuda:0" {
		t.Error(got)
	}
	if got := watched(began, zero, one, worker); got != "cuda:1 cuda:1" {
		t.Errorf("begun again: %s", got)
	}
	if got := watched(began, alarm(report.LiveOver, "s1-a", "cuda:0", ""), zero); got != "cuda:0" {
		t.Errorf("after its end: %s", got)
	}
	if got := watched(began.Add(time.Hour), zero); got != "cuda:0" {
		t.Errorf("of another run: %s", got)
	}
	names, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(names) != 2 {
		t.Errorf("%v, %v", names, err)
	}
	for _, name := range names { // as after a full disk
		if err := os.WriteFile(name, []byte(`{"a`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := watched(began, zero); got != "cuda:0" {
		t.Errorf("of a broken ledger: %s", got)
	}
}

// TestOldLedgersAreRemovedFromAFolderOfAnyName: the name is no pattern.
func TestOldLedgersAreRemovedFromAFolderOfAnyName(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "lr=[0.1]*")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	old, other := filepath.Join(folder, "alarms-1.json"), filepath.Join(folder, "notes.json")
	for _, name := range []string{old, other} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		long := time.Now().Add(-2 * ledgersKept)
		if err := os.Chtimes(name, long, long); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := OpenLedger(folder, t.TempDir(), time.Unix(500, 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("the old ledger is left")
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
}

// TestTwoWatchesShareALedger: what one notes stays when the other writes, though it cannot be written at first.
func TestTwoWatchesShareALedger(t *testing.T) {
	folder, run, began := t.TempDir(), t.TempDir(), time.Unix(500, 0)
	open := func() *Ledger {
		l, err := OpenLedger(folder, run, began)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	leak := func(place string) *report.Live { e := alarm(report.LiveLeak, place, "cuda:0", ""); return &e }
	over := func(place string) *report.Live { e := alarm(report.LiveOver, place, "cuda:0", ""); return &e }
	one, other := open(), open()
	full := filepath.Join(folder, "full")
	path := one.path
	one.path = filepath.Join(full, "ledger")
	if err := one.arrived("", leak("a")); err == nil {
		t.Error("it is written where there is no folder")
	}
	one.path = path
	for _, noted := range []error{other.arrived("", leak("b")), other.arrived("", leak("c")), one.arrived("", over("b"))} {
		if noted != nil {
			t.Fatal(noted)
		}
	}
	// Another watch that had read the file before wrote it after.
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{one.arrived("", leak("d")), os.WriteFile(path, before, 0o600), one.arrived("", leak("e"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	third := open()
	if third.news("", leak("a")) || !third.news("", leak("b")) || third.news("", leak("c")) || third.news("", leak("d")) {
		t.Errorf("%v", third.going)
	}
}

// TestARunThatDoesNotSayWhenItBeganHasNoLedger, as a folder of dumps: a job that begins again in it looks the same.
func TestARunThatDoesNotSayWhenItBeganHasNoLedger(t *testing.T) {
	folder := t.TempDir()
	leak := alarm(report.LiveLeak, "a", "cuda:0", "")
	for range 2 {
		l, err := OpenLedger(folder, folder, time.Time{})
		if err != nil || !l.news("", &leak) || l.arrived("", &leak) != nil {
			t.Errorf("%v, %v", l, err)
		}
	}
}
