package nn

import "github.com/memdiag/memdiag/engine"

// Embedding looks vectors up by number.
type Embedding struct {
	Table *engine.Tensor // [rows d]
}

// NewEmbedding draws a table with elements of unit variance.
func NewEmbedding(o engine.Ops, r *engine.Random, rows, d int) *Embedding {
	return &Embedding{Table: uniform(o, r, lecun(1), rows, d)}
}

// Forward maps ids int32 […] to their rows [… d]. An id outside the table is an
// error that Sync returns.
func (e *Embedding) Forward(o engine.Ops, ids *engine.Tensor) *engine.Tensor {
	dims := append(ids.Shape().Slice(), e.Table.Dim(1))
	return o.Reshape(o.Gather(e.Table, o.Reshape(ids, ids.Shape().Elements())), dims...)
}

// Parameters lists the table.
func (e *Embedding) Parameters() []*engine.Tensor { return []*engine.Tensor{e.Table} }

// State names the table.
func (e *Embedding) State() []engine.Named {
	return []engine.Named{{Name: "table", Tensor: e.Table}}
}
