package report

import (
	"cmp"
	"slices"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// box is one call in the flamegraph, with everything that was allocated below it.
type box struct {
	label     string // short, for the picture
	name      string // full name, for the tooltip and the search
	library   bool   // whether it is a library's in each of its stacks
	value     int64  // bytes; the sum over the samples through this call
	weight    int64  // sum of absolute values: the box's width
	blocks    int64
	sure      int64 // the part of weight that is no noise
	leaks     bool  // whether a leaking site is among the samples
	guilty    bool  // whether it is the headline frame of a leaking site
	children  []*box
	index     map[boxKey]*box
	order     int // of creation, to break ties
	parent    *box
	kept      int // children that are drawn
	drawn     bool
	smaller   int // number of boxes in a "(N smaller)" box
	x, depth  int64
	isFolding bool
	unstacked bool // no frame, but the label of memory without a recorded stack
}

// boxKey distinguishes a call's children. label is for a child that is no frame.
type boxKey struct {
	frame snapshot.Frame
	label string
}

type flameTree struct {
	root  *box
	boxes []*box // all but the root
	depth int64
	// unstacked: whether some memory has no stack.
	unstacked bool
}

// newFlameTree merges the samples by their calls, outermost first. Samples without bytes have no width and are left out.
func newFlameTree(p *Profile) *flameTree {
	t := &flameTree{root: &box{label: "all", name: "all", index: make(map[boxKey]*box), drawn: true}}
	several := p.devices() > 1
	for i := range p.Samples {
		s := &p.Samples[i]
		v := s.Value()
		weight := int64(v.Bytes)
		if weight < 0 {
			weight = -weight
		}
		if weight == 0 {
			continue
		}
		leaks := s.Verdict == diff.Leak
		at := t.root
		one := box{value: int64(v.Bytes), weight: weight, blocks: v.Blocks, leaks: leaks}
		if !s.Noise {
			one.sure = weight
		}
		at.add(&one)
		enter := func(key boxKey) {
			at = t.child(at, key)
			at.add(&one)
		}
		if several {
			enter(boxKey{label: deviceName(s.Device)})
		}
		headline, own := p.heads.of(s.Device, s.Hash, s.Frames), frame.Own(s.Frames)
		if s.head != nil {
			headline = slices.Index(s.Frames, *s.head)
		}
		calls := drawnCalls(s.Frames)
		if p.Inverted {
			slices.Reverse(calls)
		}
		for _, j := range calls[:min(maxFlameDepth, len(calls))] {
			enter(boxKey{frame: s.Frames[j]})
			at.library = at.library && !own(s.Frames[j])
			at.guilty = at.guilty || leaks && j == headline
		}
		if deeper := len(calls) - maxFlameDepth; deeper > 0 {
			enter(boxKey{label: "(" + grouped(int64(deeper)) + " deeper)"})
			at.guilty = at.guilty || leaks && slices.Contains(calls[maxFlameDepth:], headline)
		}
		if len(s.Frames) == 0 {
			enter(boxKey{label: brief(s.Label)})
			at.unstacked, t.unstacked = true, true
		}
	}
	return t
}

// maxFlameDepth bounds the rows of the picture. A runaway recursion would make it unreadable; Python's own limit is 1000.
const maxFlameDepth = 500

// drawnCalls returns the indices of the frames that are drawn, outermost first: all that are no noise, or all frames if there are no
// others.
func drawnCalls(frames []snapshot.Frame) []int {
	var all, calls []int
	for j := len(frames) - 1; j >= 0; j-- {
		all = append(all, j)
		if !frame.Noise(frames[j]) {
			calls = append(calls, j)
		}
	}
	if len(calls) == 0 {
		return all
	}
	return calls
}

// add adds another box's memory to this one's.
func (b *box) add(o *box) {
	b.value += o.value
	b.weight += o.weight
	b.blocks += o.blocks
	b.sure += o.sure
	b.leaks = b.leaks || o.leaks
}

func (t *flameTree) child(at *box, key boxKey) *box {
	if c := at.index[key]; c != nil {
		return c
	}
	c := &box{label: key.label, name: key.label, parent: at, order: len(t.boxes)}
	if key.label == "" {
		c.label, c.name, c.library = shortLabel(key.frame), shortened(frameLabel(key.frame)), true
	}
	if at.index == nil {
		at.index = make(map[boxKey]*box, 1)
	}
	at.index[key] = c
	at.children = append(at.children, c)
	t.boxes = append(t.boxes, c)
	return c
}

// prune keeps at most limit boxes, including the root and the boxes for folded calls. It returns how many calls are left out. A call's
// children are folded from the smallest on, so each drawn box is still as wide as everything below it.
func (t *flameTree) prune(limit int) (left int) {
	// A parent is never narrower than its child, and is created before it, so this order decides parents first.
	slices.SortFunc(t.boxes, func(a, b *box) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.order, b.order))
	})
	drawn := 1
	if len(t.root.children) > 0 {
		drawn++ // its fold
	}
	next := 0
	for ; next < len(t.boxes); next++ {
		b := t.boxes[next]
		more := 1
		if len(b.children) > 0 {
			more++
		}
		if b.parent.kept+1 == len(b.parent.children) {
			more-- // the parent's fold is no longer needed
		}
		if drawn+more > limit {
			break
		}
		drawn += more
		b.drawn = true
		b.parent.kept++
	}
	for _, b := range t.boxes[next:] {
		drawnAncestor := b.parent
		for !drawnAncestor.drawn {
			drawnAncestor = drawnAncestor.parent
		}
		drawnAncestor.smaller++
	}
	return len(t.boxes) - next
}

// layout places the boxes, widest first below each parent and folded calls at the right. It returns them parents first.
func (t *flameTree) layout() []*box {
	var out []*box
	var walk func(b *box)
	walk = func(b *box) {
		out = append(out, b)
		t.depth = max(t.depth, b.depth)
		x := b.x
		var rest *box
		slices.SortFunc(b.children, func(c, d *box) int {
			return cmp.Or(cmp.Compare(d.weight, c.weight), cmp.Compare(c.label, d.label), cmp.Compare(c.order, d.order))
		})
		for _, c := range b.children {
			if !c.drawn {
				if rest == nil {
					rest = &box{depth: b.depth + 1, isFolding: true, library: true, smaller: b.smaller}
				}
				rest.add(c)
				continue
			}
			c.x, c.depth = x, b.depth+1
			walk(c)
			x += c.weight
		}
		if rest != nil {
			rest.x = x
			rest.label = "(" + grouped(int64(rest.smaller)) + " smaller)"
			rest.name = rest.label
			out = append(out, rest)
			t.depth = max(t.depth, rest.depth)
		}
	}
	walk(t.root)
	return out
}
