package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// Folded writes p as folded stacks, one line a site, outermost frame first: the
// input of flamegraph.pl, speedscope and inferno. A snapshot's line ends in its
// bytes; a growth's in two figures, the bytes before and after, as difffolded.pl
// writes them. Frames are "function (file:line)"; semicolons in names, which would
// split a frame, become colons.
func Folded(w io.Writer, p *Profile) error {
	var b bytes.Buffer
	several := p.devices() > 1
	for i := range p.Samples {
		s := &p.Samples[i]
		var calls []string
		if several {
			calls = append(calls, deviceName(s.Device))
		}
		for j := len(s.Frames) - 1; j >= 0; j-- {
			calls = append(calls, frameLabel(s.Frames[j]))
		}
		if len(s.Frames) == 0 {
			calls = append(calls, Printable(s.Label))
		}
		for j := range calls {
			calls[j] = strings.ReplaceAll(calls[j], ";", ":")
		}
		b.WriteString(strings.Join(calls, ";"))
		if p.Growth {
			fmt.Fprintf(&b, " %d", int64(s.Before.Bytes))
		}
		fmt.Fprintf(&b, " %d\n", int64(s.After.Bytes))
	}
	_, err := w.Write(b.Bytes())
	return err
}
