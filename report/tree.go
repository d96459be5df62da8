package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/memdiag/memdiag/snapshot"
)

// leastBranch: calls of a tree that hold less than this share of the total are summed in one line.
const leastBranch = 0.01

// Tree writes p as a tree of calls for a terminal: one line per call, with the bytes of everything below it and their share. It is
// indented where stacks branch. Calls that hold less than a hundredth are summed.
func Tree(w io.Writer, p *Profile, o TextOptions) error {
	out := newPage(o)
	t := newFlameTree(p)
	out.line(out.paint.bold(p.Title))
	out.line("")
	if t.root.weight == 0 {
		out.line("nothing is live, or has changed")
		return out.writeTo(w)
	}
	value := func(b int64) string {
		if p.PerUnit != "" {
			return plusSign(float64(b)) + snapshot.FormatBytes(float64(b)/rateScale) + "/" + p.PerUnit
		}
		if p.Growth {
			return signed(snapshot.Bytes(b))
		}
		return snapshot.Bytes(b).String()
	}
	width := len("+1023 KiB") + 3
	if p.PerUnit != "" {
		width += len("/") + len(p.PerUnit)
	}
	row := func(b *box, indent, mark, name string) {
		head := fmt.Sprintf("%*s %5.1f %%  %s%s", width, value(b.value), 100*float64(b.weight)/float64(t.root.weight), indent, mark)
		if o.Width > 0 && visible(head+name) > o.Width && b.label != "" {
			name = b.label // without the folders of its file
		}
		if b.guilty {
			name += out.paint.red("  <- leaks")
		}
		out.line(head + name)
	}
	var walk func(b *box, indent string)
	walk = func(b *box, indent string) {
		slices.SortFunc(b.children, func(c, d *box) int {
			return cmp.Or(cmp.Compare(d.weight, c.weight), cmp.Compare(c.name, d.name))
		})
		shown := slices.IndexFunc(b.children, func(c *box) bool { return float64(c.weight) < leastBranch*float64(t.root.weight) })
		if shown < 0 {
			shown = len(b.children)
		}
		small := box{}
		for _, c := range b.children[shown:] {
			small.add(c)
		}
		for i, c := range b.children[:shown] {
			switch last := i == shown-1 && small.weight == 0; {
			case len(b.children) == 1: // its bytes are the caller's
				row(c, indent, "", c.name)
				walk(c, indent)
			case last:
				row(c, indent, "└ ", c.name)
				walk(c, indent+"  ")
			default:
				row(c, indent, "├ ", c.name)
				walk(c, indent+"│ ")
			}
		}
		if n := len(b.children) - shown; n > 0 {
			row(&small, indent, "└ ", "("+grouped(int64(n))+" smaller)")
		}
	}
	row(t.root, "", "", "all")
	walk(t.root, "")
	return out.writeTo(w)
}
