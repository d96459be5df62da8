package report

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/pprof/profile"
	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

func TestPprof(t *testing.T) {
	for _, c := range []struct {
		name, file string
		profile    *Profile
		want       diff.Tally
	}{
		{"a growth has negative values too", "growth.pprof.golden", GrowthProfile(pyramidResult(t)), diff.Tally{Blocks: 51, Bytes: 40 << 20}},
		{"a snapshot has what is live", "live.pprof.golden", LiveProfile(last(pyramid())), diff.Tally{Blocks: 57, Bytes: 49<<20 + 4096}},
		{"hostile names are escaped", "hostile.pprof.golden", GrowthProfile(attacked(t)), diff.Tally{Blocks: 1, Bytes: 1024}},
		{"nothing live is a valid profile", "empty.pprof.golden", GrowthProfile(analyzed(t, empty())), diff.Tally{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			raw := rendered(t, func(b *bytes.Buffer) error { return Pprof(b, c.profile) })
			p, err := profile.ParseData(raw)
			if err != nil {
				t.Fatal(err)
			}
			// The text, not the bytes: compression may change with Go.
			golden(t, c.file, []byte(p.String()))
			var got diff.Tally
			for _, s := range p.Sample {
				got.Blocks += s.Value[0]
				got.Bytes += snapshot.Bytes(s.Value[1])
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("samples sum to (-want +got)\n%s", d)
			}
		})
	}
}

// TestPprofShowsNamesWhole: pprof drops what is in angle brackets from a name that is
// the system's too, and makes one function of those of equal name.
func TestPprofShowsNamesWhole(t *testing.T) {
	frames := []snapshot.Frame{{File: "lib.py", Line: 7}, {Function: "<module>", File: "train.py", Line: 3}, {Line: -1}}
	raw := rendered(t, func(b *bytes.Buffer) error {
		return Pprof(b, &Profile{Samples: []Sample{{Frames: frames, After: diff.Tally{Blocks: 1, Bytes: 1}}}})
	})
	p, err := profile.ParseData(raw)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"lib.py:7", "<module>", "<unknown function>"} {
		if f := p.Sample[0].Location[i].Line[0].Function; f.Name != want || f.SystemName == f.Name {
			t.Errorf("frame %d is %q, in the system %q; want %q", i, f.Name, f.SystemName, want)
		}
	}
}

func TestGoToolPprofShowsOurTotals(t *testing.T) {
	tool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("go is not on the path")
	}
	file := filepath.Join(t.TempDir(), "growth.pb.gz")
	raw := rendered(t, func(b *bytes.Buffer) error { return Pprof(b, GrowthProfile(pyramidResult(t))) })
	if err := os.WriteFile(file, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	top := func(arguments ...string) string {
		command := exec.CommandContext(t.Context(), tool, append([]string{"tool", "pprof", "-top", "-unit=B", "-cum"}, append(arguments, file)...)...)
		command.Env = append(os.Environ(), "PPROF_TMPDIR="+t.TempDir())
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	// Cumulative bytes a function, pprof's fourth column.
	text := top()
	cum := make(map[string]string)
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) >= 6 {
			cum[f[5]] = f[3]
		}
	}
	for function, want := range map[string]string{
		"workload.RunPyramid":         "42991616B", // both allocations of the run: 25 MiB + 16 MiB
		"workload.(*Pyramid).Forward": "26214400B",
		"optim.(*Adam).Step":          "16777216B",
		"workload.(*Pyramid).warm":    "-1048576B",
	} {
		if cum[function] != want {
			t.Errorf("%s: %s, want %s, in\n%s", function, cum[function], want, text)
		}
	}
	for _, want := range []string{"File: memory", "Type: growth_bytes"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if text := top("-tagfocus=leak"); strings.Contains(text, "optim") || !strings.Contains(text, "26214400B") {
		t.Errorf("-tagfocus=leak does not leave the leak alone:\n%s", text)
	}
}
