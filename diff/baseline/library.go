package baseline

import (
	"github.com/memdiag/memdiag/snapshot/frame"

	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/memdiag/memdiag/diff"
)

// LibraryLeak is a leak of a framework's own that its users can only wait out, or go
// around.
type LibraryLeak struct {
	ID   string
	What string
	// Producer is who writes snapshots of the framework; From is the first version that
	// leaks so, "" for any, and Below the first that does not.
	Producer, From, Below string
	// Files end what allocates, the innermost of a stack's frames with a file of the
	// framework's; a folder ends in a slash.
	Files      []string
	WayOut     string
	References []string // public issues; the first is shown
}

// LibraryLeaks are those that a gate shows and lets pass. Each is public, with the
// versions that its references name; what allocates is the framework alone, so that no
// leak of a user's own is taken for one.
func LibraryLeaks() []LibraryLeak {
	return []LibraryLeak{
		{
			ID: "torch-dtensor-spec", What: "DTensor's dispatch keeps a DTensorSpec for each parameter and step",
			Producer: "PyTorch", From: "2.10", Below: "2.12",
			Files:  []string{"torch/distributed/tensor/_dispatch.py", "torch/distributed/tensor/_dtensor_spec.py"},
			WayOut: "update PyTorch; until then an optimizer without fused=True leaks less",
			References: []string{
				"https://github.com/pytorch/pytorch/issues/181761", "https://github.com/pytorch/pytorch/issues/188174", "https://github.com/pytorch/pytorch/pull/181792",
			},
		},
		{
			ID: "torch-dtensor-sharding-cache", What: "the cache of DTensor's sharding gets an entry for each step of an optimizer by foreach",
			Producer: "PyTorch", From: "2.10", Below: "2.11",
			Files:      []string{"torch/distributed/tensor/_sharding_prop.py", "torch/distributed/tensor/_op_schema.py"},
			WayOut:     "update PyTorch",
			References: []string{"https://github.com/pytorch/pytorch/issues/178276", "https://github.com/pytorch/pytorch/pull/178301"},
		},
		{
			ID: "torch-masked-tensor", What: "backward through a MaskedTensor leaves a cycle that no collector breaks",
			Producer: "PyTorch", Below: "2.6",
			Files:      []string{"torch/masked/maskedtensor/"},
			WayOut:     "update PyTorch to 2.6",
			References: []string{"https://github.com/pytorch/pytorch/pull/137890"},
		},
	}
}

// String is "torch-dtensor-spec of PyTorch 2.10 to before 2.12".
func (l *LibraryLeak) String() string {
	if l.From == "" {
		return fmt.Sprintf("%s of %s before %s", l.ID, l.Producer, l.Below)
	}
	return fmt.Sprintf("%s of %s %s to before %s", l.ID, l.Producer, l.From, l.Below)
}

// libraryLeak is the one that all of a finding is, in snapshots by this producer; nil
// for none, and where the producer does not tell its version.
func libraryLeak(f *diff.Finding, producer string) *LibraryLeak {
	for _, l := range LibraryLeaks() {
		version, ok := strings.CutPrefix(producer, l.Producer+" ")
		if !ok || len(numbers(version)) == 0 || !older(version, l.Below) || older(version, l.From) {
			continue
		}
		if !slices.ContainsFunc(f.Rows, func(row *diff.Row) bool { return !l.allocates(row) }) {
			return &l
		}
	}
	return nil
}

// allocates is true for a row whose innermost frame of Python is of the leak's files.
func (l *LibraryLeak) allocates(row *diff.Row) bool {
	for _, f := range row.Frames {
		file := frame.Slashed(f.File)
		if !strings.HasSuffix(file, ".py") {
			continue // below Python
		}
		return slices.ContainsFunc(l.Files, func(of string) bool {
			folder := strings.HasSuffix(of, "/")
			return folder && strings.Contains(file, "/site-packages/"+of) || !folder && strings.HasSuffix(file, "/site-packages/"+of)
		})
	}
	return false
}

// older compares versions number by number, up to what is not one: 2.10.1+cu128 is
// older than 2.11, and nothing is older than "".
func older(a, b string) bool {
	x, y := numbers(a), numbers(b)
	return len(y) > 0 && slices.Compare(x, y) < 0
}

func numbers(version string) (out []int) {
	for part := range strings.SplitSeq(version, ".") {
		digits := part[:len(part)-len(strings.TrimLeft(part, "0123456789"))]
		n, err := strconv.Atoi(digits)
		if err != nil {
			break
		}
		out = append(out, n)
		if digits != part {
			break
		}
	}
	return out
}
