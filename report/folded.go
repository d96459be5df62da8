package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Folded writes p as folded stacks, the input of flamegraph.pl, speedscope and inferno: one line per site, outermost frame first, then
// its bytes. For growth, the bytes are what the site gained. These tools read one number per line, and none below zero, so sites that
// Shrunk are left out. They would read a line with two numbers, as difffolded.pl writes it, as a stack that ends in a number. Rates are
// per thousand steps. Frames are "function (file:line)"; semicolons in names would split a frame and become colons.
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

// Shrunk counts the sites of a growth profile that hold less than before.
func (p *Profile) Shrunk() int {
	n := 0
	for i := range p.Samples {
		if p.Growth && p.Samples[i].Value().Bytes < 0 {
			n++
		}
	}
	return n
}
