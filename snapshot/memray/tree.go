package memray

import (
	"bytes"
	"strconv"

	"github.com/memdiag/memdiag/snapshot/totals"
)

// tree reads a flamegraph as memray before 1.6 wrote it: each node with those that it
// calls inside, of the same figures as the lists of later versions.
func (p *page) tree() error {
	p.place = make(map[string]int64)
	const none = -1
	if err := p.branch(none, 0); err != nil {
		return err
	}
	return p.addNodes()
}

func (p *page) branch(above int64, depth int) error {
	if depth > totals.MaxDepth {
		return p.In.Fail("a tree deeper than %d", totals.MaxDepth)
	}
	node := p.above.Len()
	p.above.Append(above)
	for _, values := range p.nodes {
		values.Append(0)
	}
	const frame = 512 // of the stack of the machine that reads, and a cell of each column
	if err := p.In.Charge(frame); err != nil {
		return err
	}
	placed := false
	err := p.Object(func(key string) (err error) {
		switch key {
		case "children":
			return p.List(func() error { return p.branch(int64(node), depth+1) })
		case "location":
			placed = true
			return p.location(node)
		case nodeBytes, nodeCount:
			*p.nodes[key].At(node), err = p.Int()
			return err
		}
		return p.Pass()
	})
	if err == nil && !placed {
		err = p.In.Fail("a node without a location")
	}
	return err
}

// location reads ["train", "leak.py", "18"].
func (p *page) location(node int) error {
	columns := []string{nodeFunction, nodeFile, nodeLine}
	n := 0
	err := p.List(func() (err error) {
		if n == len(columns) {
			return p.In.Fail("a location of more than %d parts", n)
		}
		into := p.nodes[columns[n]].At(node)
		n++
		if n == len(columns) {
			*into, err = p.lineNumber()
		} else {
			*into, err = p.placeOf()
		}
		return err
	})
	if err == nil && n < len(columns) {
		err = p.In.Fail("a location of %d parts", n)
	}
	return err
}

// lineNumber reads a number, or a text with one; 0 for any other text.
func (p *page) lineNumber() (int64, error) {
	raw, err := p.Value(true)
	if err != nil {
		return 0, err
	}
	if n, err := strconv.ParseUint(string(bytes.Trim(raw, `"`)), 10, 31); err == nil {
		return int64(n), nil
	}
	return 0, nil
}

// placeOf reads a text and keeps each once.
func (p *page) placeOf() (int64, error) {
	text, err := p.text()
	if err != nil {
		return 0, err
	}
	place, ok := p.place[text]
	if !ok {
		place = int64(p.texts.Len())
		p.place[text] = place
		p.texts.Append(text)
		const entry = 80 // in the list and the map
		err = p.In.Charge(entry + len(text))
	}
	return place, err
}
