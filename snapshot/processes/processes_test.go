package processes

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/memdiag/memdiag/snapshot"
)

func TestATableIsReadAsItWasWritten(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 5000).UTC() }
	point := func(s int64) snapshot.ProcessPoint {
		return snapshot.ProcessPoint{Time: at(s), Recorded: s > 1, Anonymous: 4096, File: 8192, Shared: 1, Swapped: 2, PSS: snapshot.Unknown, OfOthers: snapshot.Unknown, Written: 12}
	}
	first := snapshot.TreeProcess{PID: 7, Parent: 1, Started: 99, Role: `a "name", with all`, Points: []snapshot.ProcessPoint{point(1), point(2)}}
	again := snapshot.TreeProcess{PID: 7, Parent: 1, Started: 123, Role: "of the same number", Points: []snapshot.ProcessPoint{point(2)}}
	var text bytes.Buffer
	text.WriteString(Header)
	for _, p := range []snapshot.TreeProcess{first, again} {
		for i := range p.Points {
			if err := WritePoint(&text, &p, &p.Points[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	got, err := Read(&text)
	if d := cmp.Diff([]snapshot.TreeProcess{first, again}, got); err != nil || d != "" {
		t.Error(err, d)
	}
	hosts := []snapshot.HostPoint{
		{Time: at(1), Processes: 3, RSS: 4096, PSS: snapshot.Unknown, Group: snapshot.Group{Current: 1, Peak: 2, Limit: snapshot.Unknown, Anonymous: 3, File: 4, Shared: 5, Kernel: 11, LimitReached: 6, Killed: 7}, Segments: 8, SegmentBytes: 9, Folder: `/dev/shm/"a", b`},
	}
	text.Reset()
	text.WriteString(HostHeader)
	for i := range hosts {
		if err := WriteHost(&text, &hosts[i]); err != nil {
			t.Fatal(err)
		}
	}
	host, followed, err := ReadHost(&text)
	if d := cmp.Diff(hosts, host); err != nil || d != "" || !followed {
		t.Error(err, followed, d)
	}
}

func TestTablesOfAnOlderMemdiagAreRead(t *testing.T) {
	text := "time_us,processes,rss_bytes,pss_bytes\n1000000,2,4096,\n"
	got, followed, err := ReadHost(strings.NewReader(text))
	if err != nil || followed || len(got) != 1 || got[0].RSS != 4096 || got[0].Group.Current != snapshot.Unknown || got[0].Segments != -1 {
		t.Errorf("%+v, %v", got, err)
	}
	group := groupHeader + "\n1000000,2,4096,,1,,,,,,,,,,\n"
	if got, followed, err := ReadHost(strings.NewReader(group)); err != nil || !followed || len(got) != 1 || got[0].Group.Current != 1 || got[0].Group.Kernel != snapshot.Unknown {
		t.Errorf("%+v, %v", got, err)
	}
	kernel := kernelHeader + "\n1000000,2,4096,,1,,,,,,,,,,,7\n"
	if got, followed, err := ReadHost(strings.NewReader(kernel)); err != nil || !followed || len(got) != 1 || got[0].Group.Kernel != 7 || got[0].Folder != "" || !Detect([]byte(kernel)) {
		t.Errorf("%+v, %v", got, err)
	}
	others := othersHeader + "\n2000000,1,1,0,a,true,1,1,1,1,1,1\n"
	if tree, err := Read(strings.NewReader(others)); err != nil || len(tree) != 1 || tree[0].Points[0].Written != snapshot.Unknown || !Detect([]byte(others)) {
		t.Errorf("%+v, %v", tree, err)
	}
	old := oldHeader + "\n2000000,1,1,0,a,true,1,1,1,1,1\n"
	if tree, err := Read(strings.NewReader(old)); err != nil || len(tree) != 1 || tree[0].Points[0].OfOthers != snapshot.Unknown || !Detect([]byte(old)) {
		t.Errorf("%+v, %v", tree, err)
	}
	if !Detect([]byte(text)) || !Detect([]byte("time_us,pid")) || Detect([]byte("host,port\n")) {
		t.Error("Detect")
	}
}

func TestWhatIsNoTableEndsIt(t *testing.T) {
	whole := Header + "2000000,1,1,0,a,true,1,1,1,1,1,1,1\n"
	for name, line := range map[string]string{
		"no number":        "x,1,1,0,a,true,1,1,1,1,1,1,1\n",
		"below zero":       "3000000,1,1,0,a,true,-1,1,1,1,1,1,1\n",
		"too large":        "3000000,1,1,0,a,true,9223372036854775807,1,1,1,1,1,1\n",
		"fewer fields":     "3000000,1,1\n",
		"a clock put back": "1000000,1,1,0,a,true,1,1,1,1,1,1,1\n",
	} {
		got, err := Read(strings.NewReader(whole + line))
		if err == nil || !strings.Contains(err.Error(), "line 3") || len(got) != 1 || len(got[0].Points) != 1 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestACutLineIsLeftOut: also if it has all fields, of which the last may lack digits.
func TestATableOfTheTreeWhoseClockGoesBackEndsThere(t *testing.T) {
	const rest = ",1,2,3,,,,,,,,,,,,,\n"
	got, _, err := ReadHost(strings.NewReader(HostHeader + "2000000" + rest + "2000000" + rest + "1000000" + rest + "3000000" + rest))
	if err == nil || !strings.Contains(err.Error(), "line 4: the time goes back") || len(got) != 2 {
		t.Errorf("%d lines, %v", len(got), err)
	}
}

func TestACutLineIsLeftOut(t *testing.T) {
	whole := Header + "2000000,1,1,0,a,true,1,1,1,1,1,1,1\n"
	for _, line := range []string{"3", "3000000,1,1,0,\"a", "3000000,1,1,0,a,true,1,1,1,1,1,1,1"} {
		got, err := Read(iotest.OneByteReader(strings.NewReader(whole + line)))
		if !errors.Is(err, ErrCut) || len(got) != 1 || len(got[0].Points) != 1 {
			t.Errorf("%q: %+v, %v", line, got, err)
		}
	}
	host, _, err := ReadHost(strings.NewReader(HostHeader + "1,2,3,,,,,,,,,,,,,,\n2,2"))
	if !errors.Is(err, ErrCut) || len(host) != 1 {
		t.Errorf("%+v, %v", host, err)
	}
}

func TestOtherColumnsAndLongLinesAreNotRead(t *testing.T) {
	line := "2000000,1,1,0,a,true,1,1,1,1,1,1,1"
	for name, text := range map[string]string{
		"empty": "", "no columns": line + "\n", "others": "time_us,pid\n1,2\n", "swapped": strings.Replace(Header, "time_us,pid", "pid,time_us", 1) + line + "\n",
		"a long line": Header + strings.Repeat(",", maxLine+1), "a long line in quotes": Header + strings.Repeat(",\"\n\"", maxLine),
	} {
		got, err := Read(strings.NewReader(text))
		if err == nil || len(got) > 0 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if strings.HasPrefix(name, "a long") && !strings.Contains(err.Error(), "more than") {
			t.Errorf("%s: %v", name, err)
		}
	}
	more := strings.Replace(Header, "\n", ",more\n", 1)
	if got, err := Read(strings.NewReader(more + line + ",1\n")); err != nil || len(got) != 1 {
		t.Errorf("of a later memdiag: %+v, %v", got, err)
	}
}

func TestARoleStaysOnOneLine(t *testing.T) {
	if got := Role(" a\nb\x1b[31m\xff" + strings.Repeat("x", 500)); strings.ContainsAny(got, "\n\x1b") || !utf8.ValidString(got) || len(got) > maxRole {
		t.Errorf("%q", got)
	}
	if got := Role("worker --api-key=abc 'postgres://me:pass@host'"); got != "worker --api-key=*** 'postgres://***@host'" || Role(got) != got {
		t.Errorf("%q: a secret in a title", got)
	}
	if got := Role("\u009b31m\u202eworker 1"); got != `\u009b31m\u202eworker 1` || Role(got) != got {
		t.Errorf("%q; what a terminal obeys is written out", got)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(Header + "2000000,1,1,0,a,true,1,1,1,1,1,1,1\n"))
	f.Add([]byte(HostHeader + "1,2,3,,,,,,,,,,,,,\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		tree, _ := Read(bytes.NewReader(text))
		for _, p := range tree {
			if len(p.Points) == 0 || p.Points[0].Anonymous < 0 {
				t.Errorf("%+v", p)
			}
		}
		_, _, _ = ReadHost(bytes.NewReader(text))
	})
}

func TestRolesThatWereReadAreRememberedWithinABound(t *testing.T) {
	r := make(roles)
	for n := range 3 * mostRoles {
		name := fmt.Sprintf("worker\t%d", n)
		if first, again := r.of(name), r.of(name); first != Role(name) || again != first || len(r) > mostRoles {
			t.Fatalf("%q: %q, of %d", name, r.of(name), len(r))
		}
	}
}
