package mem_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/snapshot"
)

const user, tape = snapshot.OwnedByUser, snapshot.OwnedByTape

func newDevice(t testing.TB, o mem.Options) *mem.Device {
	d := mem.NewDevice(mem.Host(), o)
	t.Cleanup(func() { _ = d.Close() }) // tests that care close it themselves
	return d
}

func alloc(t testing.TB, d *mem.Device, bytes int64) *mem.Storage {
	t.Helper()
	s, err := d.Alloc(bytes, user) // alloc's line
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAnOutOfMemoryErrorSaysWhatHoldsTheMemory(t *testing.T) {
	d := newDevice(t, mem.Options{Limit: 24 * snapshot.MiB, Index: 3})
	alloc(t, d, 100)
	alloc(t, d, 300)
	if _, err := d.Alloc(16<<20, user); err != nil {
		t.Fatal(err)
	}
	_, err := d.Alloc(8<<20, user)
	var oom *mem.OutOfMemoryError
	if !errors.As(err, &oom) {
		t.Fatalf("got %v, want an OutOfMemoryError", err)
	}
	want := "cpu 3: out of memory: 8.00 MiB were asked for, the limit is 24.0 MiB; requested 16.0 MiB, allocated 16.0 MiB, active 16.0 MiB, reserved 18.0 MiB" +
		"; most is held by mem_test.TestAnOutOfMemoryErrorSaysWhatHoldsTheMemory (engine/mem/device_test.go:LINE): 16.0 MiB in 1 live block" +
		", mem_test.alloc (engine/mem/device_test.go:LINE): 512 B in 1 live block" +
		", mem_test.alloc (engine/mem/device_test.go:LINE): 512 B in 1 live block"
	if d := cmp.Diff(want, withoutLines(err.Error())); d != "" {
		t.Error(d)
	}
}

// withoutLines spares tests from following every edit of this file.
func withoutLines(text string) string {
	var out strings.Builder
	for {
		head, tail, ok := strings.Cut(text, ".go:")
		out.WriteString(head)
		if !ok {
			return out.String()
		}
		out.WriteString(".go:LINE")
		text = strings.TrimLeft(tail, "0123456789")
	}
}

func TestAnErrorNamesThreeSitesAtMost(t *testing.T) {
	d := newDevice(t, mem.Options{})
	for _, f := range []func() *mem.Storage{
		func() *mem.Storage { return alloc(t, d, 1) },
		func() *mem.Storage { return alloc(t, d, 1000) },
		func() *mem.Storage { return alloc(t, d, 2000) },
		func() *mem.Storage { return alloc(t, d, 3000) },
		func() *mem.Storage { return alloc(t, d, 4000) },
		func() *mem.Storage { return alloc(t, d, 5000) },
	} {
		f()
	}
	var live *mem.LiveError
	if err := d.Close(); !errors.As(err, &live) {
		t.Fatalf("Close said %v", err)
	}
	var sizes []snapshot.Bytes
	for _, top := range live.Top {
		sizes = append(sizes, top.Bytes)
	}
	if d := cmp.Diff([]snapshot.Bytes{5120, 4096, 3072}, sizes); d != "" || live.Blocks != 6 {
		t.Errorf("%d blocks; %s", live.Blocks, d)
	}
}

func TestSizesThatNoDeviceHasAreRefused(t *testing.T) {
	d := newDevice(t, mem.Options{})
	for name, bytes := range map[string]int64{"negative": -1, "65 TiB": 65 << 40, "the largest integer": 1<<63 - 1} {
		t.Run(name, func(t *testing.T) {
			_, err := d.Alloc(bytes, user)
			var oom *mem.OutOfMemoryError
			if err == nil || errors.As(err, &oom) {
				t.Errorf("got %v", err)
			}
		})
	}
	for name, owner := range map[string]snapshot.Owners{"no owner": 0, "two owners": user | tape, "an unknown owner": 64} {
		t.Run(name, func(t *testing.T) {
			if _, err := d.Alloc(1, owner); err == nil {
				t.Error("no error")
			}
		})
	}
	if m := d.Meters(); m.Reserved != 0 {
		t.Errorf("a refused request left %s reserved", m.Reserved)
	}
}

// misuse runs f, which must panic with a *mem.ReleaseError, and returns its text.
func misuse(t *testing.T, f func()) (text string) {
	t.Helper()
	defer func() {
		t.Helper()
		e, ok := recover().(*mem.ReleaseError)
		if !ok {
			t.Fatal("no ReleaseError")
		}
		text = withoutLines(e.Error())
	}()
	f()
	return ""
}

func TestAReferenceThatIsNotHeldCannotBeUsed(t *testing.T) {
	const freed = "cpu 0: block of 100 B is %s after its last reference was released; it was allocated by mem_test.alloc (engine/mem/device_test.go:LINE)"
	for _, c := range []struct {
		name string
		do   func(s *mem.Storage)
		want string
	}{
		{"a double release is refused", func(s *mem.Storage) { s.Release(user); s.Release(user) }, strings.ReplaceAll(freed, "%s", "released")},
		{"a retain after the last release is refused", func(s *mem.Storage) { s.Release(user); s.Retain(tape) }, strings.ReplaceAll(freed, "%s", "retained")},
		{"a move after the last release is refused", func(s *mem.Storage) { s.Release(user); s.Move(user, tape) }, strings.ReplaceAll(freed, "%s", "moved")},
		{"memory is not handed out after the last release", func(s *mem.Storage) { s.Release(user); s.Buffer() }, strings.ReplaceAll(freed, "%s", "used")},
		{
			"a class cannot release another's reference", func(s *mem.Storage) { s.Release(tape) },
			"cpu 0: block of 100 B is released for tape, while only user holds it; it was allocated by mem_test.alloc (engine/mem/device_test.go:LINE)",
		},
		{
			"a class cannot move another's reference", func(s *mem.Storage) { s.Retain(snapshot.OwnedByGrad); s.Move(tape, user) },
			"cpu 0: block of 100 B is moved for tape, while only user+grad holds it; it was allocated by mem_test.alloc (engine/mem/device_test.go:LINE)",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := alloc(t, newDevice(t, mem.Options{}), 100)
			if got := misuse(t, func() { c.do(s) }); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestAReusedBlockIsNotReleasedByItsFormerStorage(t *testing.T) {
	d := newDevice(t, mem.Options{})
	old := alloc(t, d, 100)
	place := old.Buffer()
	old.Release(user)
	reused := alloc(t, d, 100)
	if reused.Buffer() != place {
		t.Fatal("the freed block was not reused")
	}
	misuse(t, func() { old.Release(user) })
	if !reused.Alive() {
		t.Error("the new tenant was freed")
	}
}

func TestTheBlockLivesUntilEveryClassLetsGo(t *testing.T) {
	d := newDevice(t, mem.Options{})
	s := alloc(t, d, 100)
	s.Retain(user)
	s.Retain(tape)
	s.Release(user)
	s.Move(user, snapshot.OwnedByCache)
	if got := s.Owners(); got != tape|snapshot.OwnedByCache {
		t.Errorf("owners are %v", got.Names())
	}
	s.Release(tape)
	if !s.Alive() {
		t.Fatal("freed while the cache held it")
	}
	s.Release(snapshot.OwnedByCache)
	if s.Alive() || s.Owners() != 0 || d.Meters().Allocated != 0 {
		t.Error("not freed by the last release")
	}
}

func TestCloseGivesEverythingBackThoughBlocksAreLive(t *testing.T) {
	d := newDevice(t, mem.Options{})
	s := alloc(t, d, 100)
	m := s.Buffer().Memory.(*mem.HostMemory)
	err := d.Close()
	want := "cpu 0: closed with 512 B in 1 live block; most is held by mem_test.alloc (engine/mem/device_test.go:LINE): 512 B in 1 live block"
	if err == nil || withoutLines(err.Error()) != want {
		t.Errorf("Close said %v", err)
	}
	if m.Bytes() != nil {
		t.Error("the memory is still there")
	}
	if s.Alive() {
		t.Error("the storage is alive on a closed device")
	}
	s.Release(user) // a deferred release after Close is no fault
	misuse(t, func() { s.Buffer() })
	if _, err := d.Alloc(1, user); err == nil {
		t.Error("a closed device allocates")
	}
	if got := d.Meters().Reserved; got != 0 {
		t.Errorf("%s stay reserved", got)
	}
	if err := d.Close(); err != nil {
		t.Errorf("a second Close said %v", err)
	}
}

func TestStacksAreThoseOfTheProgram(t *testing.T) {
	d := newDevice(t, mem.Options{})
	s := alloc(t, d, 1)
	stack := d.Stack(s.Site())
	want := []snapshot.Frame{
		{Function: "mem_test.alloc", File: "engine/mem/device_test.go"},
		{Function: "mem_test.TestStacksAreThoseOfTheProgram", File: "engine/mem/device_test.go"},
	}
	for i := range stack {
		if stack[i].Line <= 0 {
			t.Errorf("frame %d has no line", i)
		}
		stack[i].Line = 0
	}
	if d := cmp.Diff(want, stack); d != "" {
		t.Error(d)
	}
}

// forward and backward stand for an operation and the gradient of it.
func forward(d *mem.Device) mem.SiteID { return d.Site() }

func backward(t *testing.T, d *mem.Device, parent mem.SiteID) *mem.Storage {
	defer d.SetParent(d.SetParent(parent))
	return alloc(t, d, 1)
}

func functions(stack []snapshot.Frame) []string {
	var names []string
	for _, f := range stack {
		names = append(names, f.Function)
	}
	return names
}

func TestBlocksOfABackwardPassNameTheirForwardSite(t *testing.T) {
	d := newDevice(t, mem.Options{})
	sites := []mem.SiteID{forward(d), forward(d)}
	first, second := backward(t, d, sites[0]), backward(t, d, sites[1])
	plain := alloc(t, d, 1)
	const test = "mem_test.TestBlocksOfABackwardPassNameTheirForwardSite"
	want := []string{"mem_test.alloc", "mem_test.backward", test, "backward of", "mem_test.forward", test}
	if d := cmp.Diff(want, functions(d.Stack(first.Site()))); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"mem_test.alloc", test}, functions(d.Stack(plain.Site()))); d != "" {
		t.Errorf("the parent outlives its backward: %s", d)
	}
	if first.Site() == second.Site() {
		t.Error("backward of two sites is one site")
	}
	if got := withoutLines(mem.Headline(d.Stack(first.Site()))); got != "backward of mem_test.forward (engine/mem/device_test.go:LINE)" {
		t.Errorf("the headline is %q", got)
	}
	// A site taken in a backward pass has no parent, so chains do not grow.
	old := d.SetParent(first.Site())
	if got := functions(d.Stack(forward(d))); len(got) != 2 {
		t.Errorf("a site within a backward pass is %v", got)
	}
	d.SetParent(old)
}

func TestAnUntrackedDeviceRecordsNoStacks(t *testing.T) {
	d := newDevice(t, mem.Options{Untracked: true})
	s := alloc(t, d, 1)
	if s.Site() != mem.NoSite || d.Site() != mem.NoSite || len(d.Counters(nil)) != 0 {
		t.Error("it recorded a site")
	}
	if got := mem.Take(snapshot.Mark{}, d).Blocks.Stack[0]; got != snapshot.NoStack {
		t.Errorf("the snapshot has stack %d", got)
	}
	s.Release(user)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

func TestCountersFollowTheBlocks(t *testing.T) {
	d := newDevice(t, mem.Options{})
	var live []*mem.Storage
	for range 3 {
		live = append(live, alloc(t, d, 1000))
	}
	other := alloc(t, d, 5)
	want := []mem.SiteTotal{{Site: live[0].Site(), Count: 3, Bytes: 3072}, {Site: other.Site(), Count: 1, Bytes: 512}}
	if d := cmp.Diff(want, d.Counters(nil)); d != "" {
		t.Error(d)
	}
	for _, s := range live {
		s.Release(user)
	}
	if d := cmp.Diff(want[1:], d.Counters(nil)); d != "" {
		t.Errorf("a site that holds nothing is still counted: %s", d)
	}
}

func TestHeadlinesPassOverTheOperation(t *testing.T) {
	frame := func(function string) snapshot.Frame {
		return snapshot.Frame{Function: function, File: "a.go", Line: 1}
	}
	op, layer := frame("engine.(*Eager).MatMul"), frame("nn.(*Linear).Forward")
	for _, c := range []struct {
		name  string
		stack []snapshot.Frame
		want  string
	}{
		{"the operation's caller is named", []snapshot.Frame{op, layer}, "nn.(*Linear).Forward (a.go:1)"},
		{"an operation alone is named", []snapshot.Frame{op}, "engine.(*Eager).MatMul (a.go:1)"},
		{"no operation is passed over where there is none", []snapshot.Frame{layer, op}, "nn.(*Linear).Forward (a.go:1)"},
		{"no stack is said to be none", nil, "a stack that was not recorded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := mem.Headline(c.stack); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func BenchmarkAllocRelease(b *testing.B) {
	for _, way := range []struct {
		name    string
		options mem.Options
	}{{"tracked", mem.Options{}}, {"untracked", mem.Options{Untracked: true}}} {
		b.Run(way.name, func(b *testing.B) {
			d := mem.NewDevice(bare{}, way.options)
			for range 100 { // a neighbourhood
				alloc(b, d, 4096)
			}
			b.ReportAllocs()
			for b.Loop() {
				s, err := d.Alloc(4096, user)
				if err != nil {
					b.Fatal(err)
				}
				s.Release(user)
			}
		})
	}
}

// BenchmarkChurn replaces random blocks among many, of random sizes: the free
// lists are long.
func BenchmarkChurn(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("blocks=%d", n), func(b *testing.B) {
			d := mem.NewDevice(bare{}, mem.Options{})
			random := rand.New(rand.NewPCG(1, 2))
			size := func() int64 { return 512 << random.IntN(12) }
			live := make([]*mem.Storage, n)
			for i := range live {
				live[i] = alloc(b, d, size())
			}
			churn := func() {
				i := random.IntN(n)
				live[i].Release(user)
				s, err := d.Alloc(size(), user)
				if err != nil {
					b.Fatal(err)
				}
				live[i] = s
			}
			for range 3 * n {
				churn()
			}
			b.ReportAllocs()
			for b.Loop() {
				churn()
			}
		})
	}
}

func BenchmarkCounters(b *testing.B) {
	d := mem.NewDevice(bare{}, mem.Options{})
	for i := range 200 {
		allocDeep(b, d, i)
	}
	if n := len(d.Counters(nil)); n != 200 {
		b.Fatalf("%d sites", n)
	}
	var totals []mem.SiteTotal
	b.ReportAllocs()
	for b.Loop() {
		totals = d.Counters(totals[:0])
	}
}

func BenchmarkSeriesAppend(b *testing.B) {
	d := newDevice(b, mem.Options{})
	for i := range 200 {
		allocDeep(b, d, i)
	}
	series := mem.NewSeries(d)
	b.ReportAllocs()
	for b.Loop() {
		series.Append(snapshot.Mark{})
		series.Series().Points = series.Series().Points[:0]
	}
}

// allocDeep makes one site for each number up to 1023, by branching.
func allocDeep(b *testing.B, d *mem.Device, n int) {
	if n == 0 {
		alloc(b, d, 1)
		return
	}
	[2]func(){
		func() { allocDeep(b, d, n/2) },
		func() { allocDeep(b, d, n/2) },
	}[n%2]()
}
