package pprofio

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/pprof/profile"
	"pgregory.net/rapid"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/totals"
	"github.com/memdiag/memdiag/snapshot/totals/totalstest"
)

func decode(data []byte) (*snapshot.Snapshot, error) {
	return totalstest.Decode(Decode, data)
}

// total is a site as both readers tell it.
type total struct {
	Device string
	Frames []snapshot.Frame
	Count  int64
	Bytes  snapshot.Bytes
}

func totalsOf(s *snapshot.Snapshot) []total {
	var out []total
	for _, site := range s.Sites() {
		d := s.Devices[site.Device]
		out = append(out, total{string(d.Kind), s.Stacks.Frames(site.Stack), site.Count, site.Bytes})
	}
	return sorted(out)
}

func sorted(list []total) []total {
	text := func(t total) string {
		var b strings.Builder
		b.WriteString(t.Device)
		for _, f := range t.Frames {
			b.WriteString("\x00" + f.Function + "\x00" + f.File + "\x00" + string(rune(f.Line)))
		}
		return b.String()
	}
	slices.SortFunc(list, func(a, b total) int { return cmp.Compare(text(a), text(b)) })
	return list
}

// slow reads totals out of pprof's own parser: the values at two places of each
// sample, on the device that its label tells.
func slow(p *profile.Profile, count, size int) []total {
	var out []total
	for _, s := range p.Sample {
		t := total{Device: "cpu", Bytes: snapshot.Bytes(s.Value[size]), Count: s.Value[count], Frames: []snapshot.Frame{}}
		if s.Label["kind"] != nil && s.Label["device"] == nil {
			t.Device = "executable"
		}
		for _, l := range s.Location {
			if m := l.Mapping; m != nil && m.File != "" && len(l.Line) == 0 {
				t.Frames = append(t.Frames, snapshot.Frame{Function: fmt.Sprintf("%s+%#x", filepath.Base(m.File), l.Address-m.Start+m.Offset), File: m.File, Line: -1})
			}
			for _, line := range l.Line {
				n := int(line.Line)
				if n == 0 {
					n = -1
				}
				t.Frames = append(t.Frames, snapshot.Frame{Function: line.Function.Name, File: line.Function.Filename, Line: n})
			}
		}
		same := slices.IndexFunc(out, func(o total) bool { return o.Device == t.Device && slices.Equal(o.Frames, t.Frames) })
		if same >= 0 {
			out[same].Bytes += t.Bytes
			out[same].Count += t.Count
		} else if t.Bytes != 0 || t.Count != 0 {
			out = append(out, t)
		}
	}
	return sorted(out)
}

func TestRealProfilesReadAsPprofReadsThem(t *testing.T) {
	for _, c := range []struct {
		file, producer string
		count, size    int // of the values of a sample
	}{
		{"go_10.pb.gz", "Go heap profile", 2, 3},
		{"go_30.pb.gz", "Go heap profile", 2, 3},
		{"gperftools_30.pb.gz", "pprof (inuse_space)", 2, 3},
		{"jax_20.pb.gz", "JAX device memory profile", 0, 1},
		{"jax_40.pb.gz", "JAX device memory profile", 0, 1},
	} {
		t.Run(c.file, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("..", "..", "testdata", "profilers", c.file))
			if err != nil {
				t.Fatal(err)
			}
			s, err := decode(data)
			if err != nil {
				t.Fatal(err)
			}
			p, err := profile.ParseData(data)
			if err != nil {
				t.Fatal(err)
			}
			if d := gocmp.Diff(slow(p, c.count, c.size), totalsOf(s)); d != "" {
				t.Errorf("pprof and we (-pprof +we)\n%s", d)
			}
			if s.Producer != c.producer {
				t.Errorf("producer %q", s.Producer)
			}
			if want := p.TimeNanos; want != 0 && !s.Mark.Time.Equal(time.Unix(0, want)) {
				t.Errorf("time %v", s.Mark.Time)
			}
			if !Detect(head(p)) {
				t.Error("not detected")
			}
		})
	}
}

// head is the beginning of the profile, unpacked.
func head(p *profile.Profile) []byte {
	var b bytes.Buffer
	if err := p.WriteUncompressed(&b); err != nil {
		panic(err)
	}
	return b.Bytes()[:min(b.Len(), 4096)]
}

// drawProfile draws a valid profile of two sample types with few functions, so
// that stacks repeat.
func drawProfile(t *rapid.T) *profile.Profile {
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "objects", Unit: "count"}, {Type: "space", Unit: "bytes"}},
		Mapping:    []*profile.Mapping{{ID: 1, File: "/bin/m"}},
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "functions") {
		p.Function = append(p.Function, &profile.Function{ID: uint64(i + 1), Name: rapid.SampledFrom([]string{"f", "g", ""}).Draw(t, "name"), Filename: "a.c"})
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "locations") {
		l := &profile.Location{ID: uint64(i + 1), Mapping: p.Mapping[0]}
		for range rapid.IntRange(1, 2).Draw(t, "lines") {
			l.Line = append(l.Line, profile.Line{Function: rapid.SampledFrom(p.Function).Draw(t, "function"), Line: rapid.Int64Range(0, 3).Draw(t, "line")})
		}
		p.Location = append(p.Location, l)
	}
	for range rapid.IntRange(0, 6).Draw(t, "samples") {
		s := &profile.Sample{
			Value:    []int64{rapid.Int64Range(0, 5).Draw(t, "count"), rapid.Int64Range(0, math.MaxInt32).Draw(t, "bytes")},
			Location: rapid.SliceOfN(rapid.SampledFrom(p.Location), 1, 4).Draw(t, "stack"),
		}
		if s.Value[0] == 0 { // what is counted has a count
			s.Value[1] = 0
		}
		p.Sample = append(p.Sample, s)
	}
	return p
}

func TestDrawnProfilesReadAsPprofReadsThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProfile(t)
		var b bytes.Buffer
		if err := p.Write(&b); err != nil {
			t.Fatal(err)
		}
		s, err := decode(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		want, got := slow(p, 0, 1), totalsOf(s)
		if len(want) != len(got) || len(want) > 0 && gocmp.Diff(want, got) != "" {
			t.Fatalf("-pprof +we\n%s", gocmp.Diff(want, got))
		}
	})
}

// made is a profile of one sample, with its values as given.
func made(types []string, values ...int64) *profile.Profile {
	f := &profile.Function{ID: 1, Name: "f", Filename: "a.py"}
	l := &profile.Location{ID: 1, Line: []profile.Line{{Function: f, Line: 3}}}
	p := &profile.Profile{Function: []*profile.Function{f}, Location: []*profile.Location{l}}
	for _, name := range types {
		kind, unit, _ := strings.Cut(name, "/")
		p.SampleType = append(p.SampleType, &profile.ValueType{Type: kind, Unit: unit})
	}
	p.Sample = []*profile.Sample{{Location: []*profile.Location{l}, Value: values}}
	return p
}

func written(p *profile.Profile) []byte {
	var b bytes.Buffer
	if err := p.WriteUncompressed(&b); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func TestWhatIsLiveIsFoundAmongTheSampleTypes(t *testing.T) {
	for _, c := range []struct {
		name     string
		types    []string
		def      string
		values   []int64
		count    int64
		bytes    snapshot.Bytes
		producer string
	}{
		{"what was allocated is not what is live", []string{"alloc_objects/count", "alloc_space/bytes", "inuse_objects/count", "inuse_space/bytes"}, "alloc_space", []int64{9, 99, 2, 20}, 2, 20, "pprof (inuse_space)"},
		{"the default of several", []string{"blocks/count", "requested/bytes", "bytes/bytes"}, "bytes", []int64{3, 28, 32}, 3, 32, "pprof (bytes)"},
		{"without a count a stack is one block", []string{"space/bytes"}, "", []int64{64}, 1, 64, "pprof (space)"},
		{"blocks of no bytes count", []string{"allocations/count", "space/bytes"}, "", []int64{4, 0}, 4, 0, "JAX device memory profile"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := made(c.types, c.values...)
			p.DefaultSampleType = c.def
			s, err := decode(written(p))
			if err != nil {
				t.Fatal(err)
			}
			sites := s.Sites()
			if len(sites) != 1 || sites[0].Count != c.count || sites[0].Bytes != c.bytes || s.Producer != c.producer {
				t.Errorf("%+v by %q", sites, s.Producer)
			}
		})
	}
}

func TestLabelsTellTheDevice(t *testing.T) {
	for label, want := range map[string]snapshot.Device{
		"cuda:3":                             {Kind: "cuda", Index: 3},
		"TFRT_CPU_0":                         {Kind: "TFRT_CPU", Index: 0},
		"npu":                                {Kind: "npu"},
		"x:99999999999999999999":             {Kind: "x:99999999999999999999"},
		"":                                   {Kind: "cpu", Name: "host heap"},
		strings.Repeat("y", 100) + ":" + "1": {Kind: snapshot.DeviceKind(strings.Repeat("y", 64))},
	} {
		p := made([]string{"objects/count", "space/bytes"}, 1, 8)
		if label != "" {
			p.Sample[0].Label = map[string][]string{"device": {label}}
		}
		s, err := decode(written(p))
		if err != nil {
			t.Fatal(err)
		}
		if d := s.Devices[0]; d.Kind != want.Kind || d.Index != want.Index || d.Name != want.Name {
			t.Errorf("%q: %+v, want %+v", label, d, want)
		}
	}
}

func TestAddressesWithoutSymbolsAreNamedByTheirPlaceInTheBinary(t *testing.T) {
	at := func(start uint64) snapshot.Frame {
		p := made([]string{"objects/count", "space/bytes"}, 1, 8)
		p.Mapping = []*profile.Mapping{{ID: 1, Start: start, Limit: start + 0x1000, Offset: 0x200, File: "/lib/x.so"}}
		p.Location[0].Mapping, p.Location[0].Line, p.Location[0].Address = p.Mapping[0], nil, start+0x34
		p.Function = nil
		s, err := decode(written(p))
		if err != nil {
			t.Fatal(err)
		}
		return s.Stacks.FrameAt(0)
	}
	want := snapshot.Frame{Function: "x.so+0x234", File: "/lib/x.so", Line: -1}
	if a, b := at(0x7f0000), at(0x55555000); a != want || b != want {
		t.Errorf("%+v and %+v, want %+v in every process", a, b, want)
	}
}

func TestAFunctionWithoutAFileIsOfItsBinary(t *testing.T) {
	for binary, want := range map[string]string{"/home/user/leak": "/home/user/leak", "device memory": "", "": ""} {
		p := made([]string{"objects/count", "space/bytes"}, 1, 8)
		p.Mapping = []*profile.Mapping{{ID: 1, File: binary}}
		p.Function[0].Filename, p.Location[0].Line[0].Line, p.Location[0].Mapping = "", 0, p.Mapping[0]
		s, err := decode(written(p))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := s.Stacks.FrameAt(0), (snapshot.Frame{Function: "f", File: want, Line: -1}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

func TestProfilesThatAreNoSnapshots(t *testing.T) {
	good := made([]string{"objects/count", "space/bytes"}, 1, 8)
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"a CPU profile", written(made([]string{"samples/count", "cpu/nanoseconds"}, 1, 8)), `byte 0: a pprof profile of "samples" in "count", "cpu" in "nanoseconds": none tells the bytes that are live`},
		{"what was allocated only", written(made([]string{"alloc_space/bytes"}, 1)), "none tells the bytes that are live"},
		{"our own growth", written(made([]string{"growth_blocks/count", "growth_bytes/bytes"}, 1, 8)), "a profile of growth"},
		{"a difference", written(made([]string{"objects/count", "space/bytes"}, 1, -8)), "this is a difference of profiles"},
		{"nothing", nil, "a pprof profile of nothing"},
		{"half a profile", written(good)[:len(written(good))-3], "the file ends in the middle"},
		{"no protocol buffer", []byte("\x00\x00"), "0x0 is no field of a pprof profile"},
		{"a length that lies", []byte("\x0a\xff\xff\xff\xff\x0f"), "a message of 4294967295 bytes"},
		{"a message cut inside", []byte("\x0a\x03\x08\x80\x80"), "a message of the profile is damaged"},
		{"a sample of too few values", append(written(good), "\x12\x03\x12\x01\x01"...), "a sample of 1 values in a profile of 2"},
		{"a location that is missing", append(written(good), "\x12\x07\x0a\x01\x63\x12\x02\x01\x01"...), "a sample names location 99, which is not there"},
		{"a group, which no profile has", []byte("\x0b"), "wire type 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := decode(c.data)
			totalstest.Refused(t, err, c.want)
		})
	}
}

// Files of a few kB that would fill memory, or never end, were their counts
// believed.
func TestHostileProfilesEnd(t *testing.T) {
	message := func(tag byte, body []byte) []byte {
		b := []byte{tag}
		n := len(body)
		for ; n >= 0x80; n >>= 7 {
			b = append(b, byte(n)|0x80)
		}
		return append(append(b, byte(n)), body...)
	}
	types := []byte("\x32\x00\x32\x05bytes\x0a\x04\x08\x01\x10\x01")
	lines := message(0x22, append([]byte("\x08\x01"), bytes.Repeat([]byte("\x22\x00"), 1<<20)...))
	refs := append(message(0x0a, bytes.Repeat([]byte{1}, 1<<20)), "\x12\x01\x01"...)
	for _, c := range []struct {
		name string
		body []byte
		want string // in the error; "" where the file is fine, if odd
	}{
		{"endless empty names", bytes.Repeat([]byte("\x32\x00"), 10<<20), "its tables take more memory"},
		{"endless places", bytes.Repeat([]byte("\x22\x02\x08\x01"), 10<<20), "its tables take more memory"},
		{"a million calls of a million frames", slices.Concat(lines, message(0x12, refs), message(0x12, refs)), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var packed bytes.Buffer
			z := gzip.NewWriter(&packed)
			_, _ = z.Write(slices.Concat(types, c.body))
			_ = z.Close()
			began := time.Now()
			s, err := decode(packed.Bytes())
			if d := time.Since(began); d > time.Minute { // about 0.2 s, where nothing else runs
				t.Errorf("took %v", d)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if c.want == "" && (err != nil || len(s.Stacks.Frames(1)) != totals.MaxDepth || len(s.Notes) != 1+1) {
				t.Errorf("%v, %q", err, s.Notes)
			}
			t.Log(time.Since(began))
		})
	}
}

// Names were empty, and stacks that differ in them alone were one.
func TestAProfileThatIsCutBetweenTextsIsAnError(t *testing.T) {
	p := made([]string{"objects/count", "space/bytes"}, 1, 8)
	whole := written(p)
	last := bytes.LastIndex(whole, []byte("\x32\x04a.py"))
	if last < 0 {
		t.Fatal("no text of the file's name")
	}
	if _, err := decode(whole[:last+6]); err != nil {
		t.Error(err)
	}
	_, err := decode(whole[:last])
	totalstest.Refused(t, err, "the file ends in the middle of the snapshot")
}

func TestDetectTellsProfilesFromOtherFiles(t *testing.T) {
	for name, head := range map[string]string{
		"text":                        "heap profile: 1: 2 [3: 4] @\n",
		"empty lines":                 "\n\n\n\n\n\n\n\n\n\n\n\n\n\n",
		"a line of three characters":  "\n\x03abc",
		"a pickle":                    "\x80\x04\x95\x00\x00",
		"nothing":                     "",
		"a field that no profile has": "\x0a\x04\x08\x01\x10\x02\xfa\x01\x00",
	} {
		if Detect([]byte(head)) {
			t.Errorf("%s is taken for a profile", name)
		}
	}
}

func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob("../../testdata/profilers/*.pb.gz")
	if err != nil || len(files) == 0 {
		f.Fatal("no seeds: ", err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		p, err := profile.ParseData(data)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(written(p))
	}
	f.Add(written(made([]string{"objects/count", "space/bytes"}, 1, 8)))
	said := made([]string{"blocks/count", "bytes/bytes"}, 1, 8)
	said.TimeNanos, said.Comments = 9e6, []string{"memdiag: step 5", "memdiag: rank 1", "memdiag: producer massif", "memdiag: recording 4 since 7", "memdiag: device cpu:0 is host heap", "memdiag: note one"}
	f.Add(written(said))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := decode(data)
		if err != nil {
			totalstest.Refused(t, err, "")
			return
		}
		// What pprof takes for a profile of the usual two types reads alike.
		p, err := profile.ParseUncompressed(data)
		if err != nil || p.CheckValid() != nil || len(p.SampleType) != 2 || s.Producer != "pprof (space)" ||
			p.SampleType[0].Type != "objects" || p.SampleType[0].Unit != "count" || p.SampleType[1].Unit != "bytes" {
			return
		}
		var want, got snapshot.Bytes
		for _, sample := range p.Sample {
			want += snapshot.Bytes(sample.Value[1])
		}
		for _, site := range s.Sites() {
			got += site.Bytes
		}
		if want != got {
			t.Fatalf("%d bytes, pprof reads %d", got, want)
		}
	})
}

func TestACommentTellsTheStep(t *testing.T) {
	for want, comments := range map[int64][]string{
		50:              {"memdiag: Live memory of snapshot_50", "memdiag: step 50"},
		0:               {"memdiag: step 0"},
		snapshot.NoStep: {"step 7", "memdiag: step -7", "memdiag: step 99999999999999999999"},
	} {
		p := made([]string{"objects/count", "space/bytes"}, 1, 8)
		p.Comments = comments
		s, err := decode(written(p))
		if err != nil {
			t.Fatal(err)
		}
		if s.Mark.Step != want {
			t.Errorf("%q: step %d, want %d", comments, s.Mark.Step, want)
		}
	}
}

func TestCommentsTellWhatAProfileHasNoPlaceFor(t *testing.T) {
	p := made([]string{"blocks/count", "bytes/bytes"}, 1, 8)
	p.TimeNanos = 90_000_000
	p.Sample[0].Label = map[string][]string{"device": {"cpu:0"}}
	p.Comments = []string{
		"memdiag: rank 3", "memdiag: producer massif", "memdiag: recording 42 since 70000", "memdiag: device cpu:0 is host heap", "memdiag: note one", "memdiag: note two",
		"note three", "memdiag: rank -1", "memdiag: recording 43 since 90001", "memdiag: recording 44",
	}
	s, err := decode(written(p))
	if err != nil {
		t.Fatal(err)
	}
	type told struct {
		Rank                    int
		Producer, Name, Process string
		First, Last             int64
		Notes                   []string
	}
	h := s.History
	got := told{s.Rank, s.Producer, s.Devices[0].Name, h.Process, h.First.UnixMicro(), h.Last.UnixMicro(), s.Notes}
	if d := gocmp.Diff(told{3, "massif", "host heap", "42", 70_000, 90_000, []string{"one", "two"}}, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestACommentTellsWhatHoldsTheStackOfSoManyBytes(t *testing.T) {
	for remark, want := range map[string][]snapshot.Holder{
		"memdiag: holder 8192 100 101 list __main__.kept":        {{Kind: "list", Path: "__main__.kept", Items: 101}},
		"memdiag: holder 8192 90 2 dict of[…] names":             {{Kind: "dict", Path: "of[…] names", Items: 2}},
		"memdiag: holder 8192 10 10 list __main__.few":           nil,
		"memdiag: holder 64 100 100 list __main__.small":         nil,
		"memdiag: holder 1 819200 819200 list __main__.elements": nil,
		"memdiag: holder -8192 100 100 list __main__.kept":       nil,
		"memdiag: holder 8192 100 100 list":                      nil,
		"memdiag: holder 8192 0 99999999999999999999 list a":     nil,
	} {
		p := made([]string{"objects/count", "space/bytes"}, 120, 100*8192+80)
		p.Comments = []string{remark}
		s, err := decode(written(p))
		if err != nil {
			t.Fatal(err)
		}
		for i := range s.Holders {
			if s.Holders[i].Stack != s.Blocks.Stack[0] {
				t.Errorf("%q: of stack %d", remark, s.Holders[i].Stack)
			}
			s.Holders[i].Stack = 0
		}
		if d := gocmp.Diff(want, s.Holders, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%q: -want +got\n%s", remark, d)
		}
	}
}

// Of arrays of one size the recorder knows what holds all, and a profile the lines that make them, of which none makes as many.
func TestAHolderHasTheStacksThatMakeAsManyBytesTogether(t *testing.T) {
	for remark, want := range map[string]int{
		"memdiag: holder 8192 305 100 list __main__.kept":                3,
		"memdiag: holder 8192 210 100 list __main__.kept":                0, // two of the lines? none tells which
		"memdiag: holder 8192 305 150 list __main__.kept":                0, // not in each item
		"memdiag: holder 8192 305 0 variable f.<locals>.step":            0,
		"memdiag: holder 4096 610 100 list __main__.of_another_size":     0,
		"memdiag: holder 8192 120 100 list __main__.what_one_line_makes": 1,
	} {
		p := made([]string{"objects/count", "space/bytes"}, 100, 100*8192)
		for i, count := range []int64{101, 104, 2} {
			l := &profile.Location{ID: uint64(i) + 2, Line: []profile.Line{{Function: p.Function[0], Line: int64(i) + 4}}}
			p.Location = append(p.Location, l)
			p.Sample = append(p.Sample, &profile.Sample{Location: []*profile.Location{l}, Value: []int64{count, count * 8192}})
		}
		p.Comments = []string{remark}
		s, err := decode(written(p))
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Holders) != want {
			t.Errorf("%q: %d stacks are held, want %d", remark, len(s.Holders), want)
		}
	}
}

func TestWhatAProfileAsksForIsBounded(t *testing.T) {
	const types = "\x32\x00\x32\x05bytes\x0a\x04\x08\x01\x10\x01"
	totalstest.Flooded(t, decode, totalstest.TooMuchMemory,
		totalstest.Flood{Name: "functions", Before: types, Piece: "\x2a\x00", Count: 350_000, Packed: true},
		totalstest.Flood{Name: "mappings", Before: types, Piece: "\x1a\x00", Count: 350_000, Packed: true},
		totalstest.Flood{Name: "frames of places", Before: types + places(450_000), Packed: true})
	calls := "\x12\x87\x80\x40\x0a\x80\x80\x40" + strings.Repeat("\x01", 1<<20) + "\x12\x01" // and a value
	totalstest.Flooded(t, decode, totalstest.TooManySteps,
		totalstest.Flood{Name: "fields", Before: types, Piece: "\x78\x00", Count: 8_500_000, Packed: true},
		totalstest.Flood{Name: "calls", Before: types + "\x22\x04\x08\x01\x22\x00", Piece: calls + "\x01", Count: 36, Packed: true})
}

// places are so many locations, each with a sample that names it.
func places(n int) string {
	var b strings.Builder
	for i := range n {
		id := string([]byte{byte(i)&0x7f | 0x80, byte(i>>7)&0x7f | 0x80, byte(i>>14) + 1})
		b.WriteString("\x22\x06\x08" + id + "\x22\x00" + "\x12\x08\x0a\x03" + id + "\x12\x01\x01")
	}
	return b.String()
}
