package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Folded writes p as folded stacks, one line a site, outermost frame first, and its bytes: the
// input of flamegraph.pl, speedscope and inferno. Of a growth the bytes are what a site gained.
// Those tools read one figure a line, and none below zero, so that Shrunk sites are left out;
// a line of two, as difffolded.pl writes it, is read as a stack that ends in a number. Rates
// are for a thousand steps. Frames are "function (file:line)"; semicolons in names, which would
// split a frame, become colons.
func Folded(w io.Writer, p *Profile) error {
	var b bytes.Buffer
	several := p.devices() > 1
	for i := range p.Samples {
		s := &p.Samples[i]
		if p.Growth && s.Value().Bytes <= 0 {
			continue
		}
		var calls []string
		if several {
			calls = append(calls, deviceName(s.Device))
		}
		for _, f := range slices.Backward(s.Frames) {
			calls = append(calls, frameLabel(f))
		}
		if p.Inverted {
			slices.Reverse(calls[len(calls)-len(s.Frames):])
		}
		if len(s.Frames) == 0 {
			calls = append(calls, Printable(s.Label))
		}
		for j := range calls {
			calls[j] = strings.ReplaceAll(calls[j], ";", ":")
		}
		fmt.Fprintf(&b, "%s %d\n", strings.Join(calls, ";"), int64(s.Value().Bytes))
	}
	_, err := w.Write(b.Bytes())
	return err
}

// Shrunk counts the sites of a growth that hold less than before.
func (p *Profile) Shrunk() int {
	n := 0
	for i := range p.Samples {
		if p.Growth && p.Samples[i].Value().Bytes < 0 {
			n++
		}
	}
	return n
}
