package autodiff

import "github.com/memdiag/memdiag/engine"

// Held reports whether anything refers to the node of a history.
func Held(h engine.History) bool { return h.(*Node).refs > 0 }
