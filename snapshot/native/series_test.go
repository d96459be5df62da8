package native

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/memdiag/memdiag/snapshot"
)

// writeSeries logs a series point by point, naming sites when they first hold
// something, and returns the length of the log after each point.
func writeSeries(t interface{ Fatal(...any) }, w *full, s *snapshot.Series) (ends []int) {
	log, err := NewSeriesWriter(w, s.Devices)
	if err != nil {
		t.Fatal(err)
	}
	for _, site := range s.Sites {
		if _, err := log.AddSite(site.Device, s.Stacks.Frames(site.Stack)); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range s.Points {
		if err := log.AppendPoint(p); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, len(w.got))
	}
	return ends
}

func roomy() *full { return &full{room: 1 << 30} }

func decodeSeries(data []byte) (*snapshot.Series, []string, error) {
	return DecodeSeries("test.memdiag", bytes.NewReader(data), int64(len(data)))
}

// seriesDifference compares by what the series say.
func seriesDifference(a, b *snapshot.Series) string {
	type view struct {
		Devices []snapshot.Device
		Sites   []int
		Stacks  [][]snapshot.Frame
		Points  []snapshot.Point
	}
	look := func(s *snapshot.Series) view {
		v := view{Devices: s.Devices, Points: s.Points}
		for _, site := range s.Sites {
			v.Sites = append(v.Sites, site.Device)
			v.Stacks = append(v.Stacks, s.Stacks.Frames(site.Stack))
		}
		return v
	}
	x, y := look(a), look(b)
	if reflect.DeepEqual(x, y) {
		return ""
	}
	return cmp.Diff(x, y, cmpopts.EquateEmpty())
}

func TestASeriesReadsBackAsItWasLogged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSeries(t)
		w := roomy()
		writeSeries(t, w, s)
		if len(s.Points) == 0 {
			s.Sites = nil // sites are written with the next point
		}
		got, notes, err := decodeSeries(w.got)
		if err != nil || len(notes) > 0 {
			t.Fatal(err, notes)
		}
		if d := seriesDifference(s, got); d != "" {
			t.Fatal(d)
		}
		twin, torn, err := slowSeries(w.got)
		if err != nil || torn {
			t.Fatal("the slow decoder:", err, torn)
		}
		if d := seriesDifference(got, twin); d != "" {
			t.Fatal("the slow decoder differs:", d)
		}
	})
}

// steps is a made-up series: one site holds a block more at every step, one
// stays as it is, and one comes and goes.
func steps(n int) *snapshot.Series {
	s := &snapshot.Series{
		Devices: []snapshot.Device{{Kind: snapshot.CPU, Name: "host", Limit: snapshot.GiB}},
		Stacks:  snapshot.NewStacks(),
	}
	for _, function := range []string{"leak", "parameters", "evaluate"} {
		s.Sites = append(s.Sites, snapshot.SeriesSite{Stack: s.Stacks.InternFrames([]snapshot.Frame{
			{Function: function, File: "train.go", Line: 10}, {Function: "main", File: "main.go", Line: 3},
		})})
	}
	for i := range int64(n) {
		live := snapshot.Bytes(i*4096 + 1<<20)
		p := snapshot.Point{
			Mark:   snapshot.Mark{Step: i, Epoch: i / 100, Phase: "train", BatchElements: 64},
			Meters: []snapshot.Meters{{Requested: live, Allocated: live, Active: live, Reserved: 2 << 20, Driver: snapshot.Unknown}},
		}
		if i > 0 {
			p.Sites = append(p.Sites, snapshot.SiteCount{Site: 0, Count: i, Bytes: snapshot.Bytes(i * 4096)})
		}
		p.Sites = append(p.Sites, snapshot.SiteCount{Site: 1, Count: 8, Bytes: 1 << 20})
		if i%10 == 9 {
			p.Sites = append(p.Sites, snapshot.SiteCount{Site: 2, Count: 1, Bytes: 512})
		}
		s.Points = append(s.Points, p)
		s.Devices[0].Meters = p.Meters[0]
	}
	return s
}

func TestALogCutAnywhereKeepsItsWholePoints(t *testing.T) {
	s := steps(20)
	w := roomy()
	ends := writeSeries(t, w, s)
	for n := range w.got {
		got, notes, err := decodeSeries(w.got[:n])
		if err != nil {
			if e := wantFormatError(t, err); n >= fileHeaderSize {
				t.Fatal(e)
			}
			continue
		}
		whole := 0
		for whole < len(ends) && ends[whole] <= n {
			whole++
		}
		if len(got.Points) != whole {
			t.Fatalf("cut at %d: %d points of %d", n, len(got.Points), whole)
		}
		if d := cmp.Diff(s.Points[:whole], got.Points, cmpopts.EquateEmpty()); d != "" {
			t.Fatal(d)
		}
		_, torn, err := slowSeries(w.got[:n])
		if err != nil || torn != (len(notes) == 1) {
			t.Fatalf("cut at %d: notes %q; the slow decoder: %v, %v", n, notes, torn, err)
		}
	}
}

func TestADamagedRecordEndsTheLogWithANote(t *testing.T) {
	w := roomy()
	ends := writeSeries(t, w, steps(20))
	w.got[ends[9]+8] ^= 1
	got, notes, err := decodeSeries(w.got)
	if err != nil || len(got.Points) != 10 {
		t.Fatal(err, len(got.Points))
	}
	want := fmt.Sprintf("test.memdiag: byte %d: the last %d bytes", ends[9], len(w.got)-ends[9])
	if len(notes) != 1 || !strings.HasPrefix(notes[0], want) {
		t.Errorf("got %q, want %q", notes, want)
	}
}

// counting counts the calls of Write.
type counting struct{ calls int }

func (c *counting) Write(b []byte) (int, error) {
	c.calls++
	return len(b), nil
}

func TestEveryPointIsOneWriteWithItsNewSites(t *testing.T) {
	var c counting
	log, err := NewSeriesWriter(&c, make([]snapshot.Device, 1))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if _, err := log.AddSite(0, []snapshot.Frame{{Function: fmt.Sprint(i)}}); err != nil {
			t.Fatal(err)
		}
		if err := log.AppendPoint(snapshot.Point{Meters: make([]snapshot.Meters, 1)}); err != nil {
			t.Fatal(err)
		}
	}
	if c.calls != 6 {
		t.Errorf("%d calls for a head and 5 points", c.calls)
	}
}

func TestAFullDiskKeepsThePointsBefore(t *testing.T) {
	s := steps(20)
	w := roomy()
	ends := writeSeries(t, w, s)
	w = &full{room: ends[9] + 5}
	log, err := NewSeriesWriter(w, s.Devices)
	if err != nil {
		t.Fatal(err)
	}
	for _, site := range s.Sites {
		if _, err := log.AddSite(site.Device, s.Stacks.Frames(site.Stack)); err != nil {
			t.Fatal(err)
		}
	}
	for i, p := range s.Points {
		if err := log.AppendPoint(p); (i >= 10) != errors.Is(err, errFull) {
			t.Fatalf("point %d: %v", i, err)
		}
		if i == 10 {
			w.room = 1 << 20 // there is room again, but a torn record lies before it
		}
	}
	got, notes, err := decodeSeries(w.got)
	if err != nil || len(notes) != 1 {
		t.Fatal(err, notes)
	}
	if d := cmp.Diff(s.Points[:10], got.Points); d != "" {
		t.Error(d)
	}
	if _, err := log.AddSite(0, nil); !errors.Is(err, errFull) {
		t.Errorf("a site after the disk was full: %v", err)
	}
}

func TestASiteThatIsListedTwiceAddsUp(t *testing.T) {
	w := roomy()
	log, err := NewSeriesWriter(w, make([]snapshot.Device, 1))
	if err != nil {
		t.Fatal(err)
	}
	frames := []snapshot.Frame{{Function: "f", File: "x.go", Line: 1}}
	first, err1 := log.AddSite(0, frames)
	again, err2 := log.AddSite(0, frames)
	other, err3 := log.AddSite(0, nil)
	if err := errors.Join(err1, err2, err3); err != nil || first != again || first == other {
		t.Fatal(err, first, again, other)
	}
	err = log.AppendPoint(snapshot.Point{Meters: make([]snapshot.Meters, 1), Sites: []snapshot.SiteCount{
		{Site: other, Count: 1, Bytes: 1}, {Site: first, Count: 1, Bytes: 512}, {Site: again, Count: 2, Bytes: 1024},
	}})
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := decodeSeries(w.got)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]snapshot.SiteCount{{Site: first, Count: 3, Bytes: 1536}, {Site: other, Count: 1, Bytes: 1}}, got.Points[0].Sites); d != "" {
		t.Error(d)
	}
}

func TestTheWriterRefusesWhatTheLogCannotName(t *testing.T) {
	w := roomy()
	log, err := NewSeriesWriter(w, make([]snapshot.Device, 1))
	if err != nil {
		t.Fatal(err)
	}
	head := len(w.got)
	for name, do := range map[string]func() error{
		"a site on a device that is not": func() error { _, err := log.AddSite(1, nil); return err },
		"a site on a device below zero":  func() error { _, err := log.AddSite(-1, nil); return err },
		"meters of too many devices":     func() error { return log.AppendPoint(snapshot.Point{Meters: make([]snapshot.Meters, 2)}) },
		"counts of a site that has no id": func() error {
			return log.AppendPoint(snapshot.Point{Meters: make([]snapshot.Meters, 1), Sites: []snapshot.SiteCount{{Site: 0}}})
		},
	} {
		if do() == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if len(w.got) != head {
		t.Error("something was written")
	}
}

// frame makes one record with a right checksum.
func frame(kind byte, content ...byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(content)))
	b = append(append(b, kind), content...)
	return binary.LittleEndian.AppendUint64(b, xxhash.Sum64(b))
}

func logOf(records ...[]byte) []byte {
	return append(fileHeader(seriesMagic), bytes.Join(records, nil)...)
}

func TestHostileLogsAreRefused(t *testing.T) {
	table := frame('D', 1, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"a snapshot":                     {encode(t, sample(3)), "not a series log"},
		"a point before the devices":     {logOf(frame('P', 0)), "before the table"},
		"a second table of devices":      {logOf(table, table), "second table"},
		"a site on a device that is not": {logOf(table, frame('S', 1, 0)), "device 1 of 1"},
		"more frames than bytes":         {logOf(table, frame('S', 0, 9, 1)), "frames, but only"},
		"a frame that is not":            {logOf(table, frame('S', 0, 1, 1)), "frame 1 of 1"},
		"a string that is not":           {logOf(table, frame('S', 0, 1, 0, 2)), "string 2 of 1"},
		"a point of a site that is not":  {logOf(table, frame('P', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0)), "site 0 after 0 of 0"},
		"bytes that no field asks for":   {logOf(table, frame('S', 0, 0, 0)), "1 bytes too many"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := decodeSeries(c.data)
			if e := wantFormatError(t, err); !strings.Contains(e.Reason, c.want) {
				t.Errorf("got %q, want %q in it", e.Reason, c.want)
			}
			if _, _, err := slowSeries(c.data); err == nil {
				t.Error("the slow decoder took it")
			}
		})
	}
}

func TestRecordsFromALaterVersionArePassedOverAndNoted(t *testing.T) {
	w := roomy()
	ends := writeSeries(t, w, steps(4))
	data := append(bytes.Clone(w.got[:ends[1]]), frame('X', 1, 2, 3)...)
	data = append(data, w.got[ends[1]:]...)
	got, notes, err := decodeSeries(data)
	if err != nil || len(notes) != 1 || !strings.Contains(notes[0], "1 records of format version") {
		t.Fatal(err, notes)
	}
	if d := seriesDifference(steps(4), got); d != "" {
		t.Error(d)
	}
}

func TestALongLogIsThinnedEvenlyAndKeepsBothEnds(t *testing.T) {
	for points := 1; points < 70; points++ {
		s := steps(points)
		w := roomy()
		writeSeries(t, w, s)
		const room = 8 * 9 // for about eight points
		got, notes, err := readSeries("test.memdiag", bytes.NewReader(w.got), int64(len(w.got)), room)
		if err != nil {
			t.Fatal(err)
		}
		stride := int64(1)
		if len(got.Points) > 1 {
			stride = got.Points[1].Mark.Step
		}
		if (stride > 1) != (len(notes) == 1) {
			t.Errorf("%d points: stride %d, notes %q", points, stride, notes)
		}
		cost := 0
		for i, p := range got.Points {
			want := min(int64(i)*stride, int64(points)-1)
			if d := cmp.Diff(s.Points[want], p); d != "" {
				t.Fatalf("%d points, stride %d, place %d: %s", points, stride, i, d)
			}
			cost += 4 + 2*len(p.Meters) + len(p.Sites)
		}
		if last := got.Points[len(got.Points)-1].Mark.Step; last != int64(points)-1 {
			t.Errorf("%d points: the last one is %d", points, last)
		}
		if cost > room+9 {
			t.Errorf("%d points: cost %d of %d", points, cost, room)
		}
	}
}

func TestAPointOfASteadyRunTakesFewBytes(t *testing.T) {
	w := roomy()
	ends := writeSeries(t, w, steps(1000))
	perPoint := float64(ends[999]-ends[99]) / 900
	if perPoint > 48 {
		t.Errorf("%.1f bytes a point", perPoint)
	} else {
		t.Logf("%.1f bytes a point", perPoint)
	}
}

func BenchmarkAppendPointOf200Sites(b *testing.B) {
	log, err := NewSeriesWriter(&counting{}, make([]snapshot.Device, 1))
	if err != nil {
		b.Fatal(err)
	}
	p := snapshot.Point{Meters: make([]snapshot.Meters, 1)}
	for i := range 200 {
		id, err := log.AddSite(0, []snapshot.Frame{{Function: fmt.Sprint(i)}})
		if err != nil {
			b.Fatal(err)
		}
		p.Sites = append(p.Sites, snapshot.SiteCount{Site: id, Count: 1, Bytes: 512})
	}
	b.ReportAllocs()
	for b.Loop() {
		p.Mark.Step++
		p.Sites[7].Count++
		if err := log.AppendPoint(p); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeSeries(b *testing.B) {
	w := roomy()
	writeSeries(b, w, steps(100_000))
	b.SetBytes(int64(len(w.got)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := decodeSeries(w.got); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzSeries feeds records with right checksums: of each, a kind, a length and
// its content. What is left over makes a torn tail.
func FuzzSeries(f *testing.F) {
	w := roomy()
	writeSeries(f, w, steps(3))
	f.Add(unframe(w.got))
	f.Add([]byte("D\x01\x00P\x08\x00\x00\x00\x00\x00\x00\x00\x00torn"))
	f.Fuzz(func(t *testing.T, input []byte) {
		data := fileHeader(seriesMagic)
		for len(input) >= 2 && len(input) >= 2+int(input[1]) {
			n := int(input[1])
			data = append(data, frame(input[0], input[2:2+n]...)...)
			input = input[2+n:]
		}
		data = append(data, input...)
		got, notes, err := decodeSeries(data)
		want, torn, slowErr := slowSeries(data)
		if (err == nil) != (slowErr == nil) {
			t.Fatalf("fast: %v; slow: %v", err, slowErr)
		}
		if err != nil {
			_ = wantFormatError(t, err)
			return
		}
		if torn && len(notes) == 0 {
			t.Fatal("a torn tail, and no note of it")
		}
		if d := seriesDifference(got, want); d != "" {
			t.Fatal(d)
		}
	})
}

// unframe turns a log into what FuzzSeries takes.
func unframe(log []byte) (out []byte) {
	for log = log[fileHeaderSize:]; len(log) > 0; {
		n := int(binary.LittleEndian.Uint32(log))
		out = append(append(out, log[4], byte(n)), log[5:5+n]...)
		log = log[13+n:]
	}
	return out
}

// manySites is a log of sites and points, each as short as can be.
func manySites(sites, points int) []byte {
	device := []snapshot.Device{{Kind: snapshot.CPU}}
	b := appendRecord(fileHeader(seriesMagic), recordDevices, func(b []byte) []byte { return appendDevices(b, device) })
	for range sites {
		b = appendRecord(b, recordSite, func(b []byte) []byte { return append(b, 0, 0) })
	}
	point := make([]byte, 12) // and the phase, which the first tells
	b = appendRecord(b, recordPoint, func(b []byte) []byte { return append(append(b, point...), 0) })
	point[2] = 1
	for range points - 1 {
		b = appendRecord(b, recordPoint, func(b []byte) []byte { return append(b, point...) })
	}
	return b
}

// Each point looked at each site: a log of 30 MB would have taken hours.
func TestSitesThatHoldNothingCostNothing(t *testing.T) {
	const many, most = 60_000, 2 * time.Second
	begin := time.Now()
	s, _, err := decodeSeries(manySites(many, many))
	if err != nil || len(s.Points) != many {
		t.Fatal(err)
	}
	if took := time.Since(begin); took > most {
		t.Errorf("%d sites and as many points took %v", many, took)
	}
}

func TestSitesAreBoundedByTheSizeOfTheLog(t *testing.T) {
	if _, _, err := decodeSeries(manySites(250_000, 1)); !strings.Contains(fmt.Sprint(err), "takes more memory than a file of its size may ask for") {
		t.Error(err)
	}
}
