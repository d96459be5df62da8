package diff

import "github.com/memdiag/memdiag/snapshot"

// kernelMemory returns the steady growth of the kernel's memory for the command, if the control group is the
// command's own; nil if there is none.
func (r *Result) kernelMemory(f *forest) *Reserve {
	var x, y []float64
	for i := range f.tree.Host {
		h := &f.tree.Host[i]
		if h.Group.Others != 0 || h.Group.Kernel == snapshot.Unknown {
			return nil
		}
		x, y = append(x, h.Time.Sub(f.began).Seconds()), append(y, float64(h.Group.Kernel))
	}
	e := r.grows(x, y)
	if e == nil {
		return nil
	}
	e.Processes = &Processes{Role: "the kernel's memory for the command", Kernel: true}
	return e
}
