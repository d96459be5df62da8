package engine

// Named is a tensor under the name that it is saved and found again by. Lists of
// them are ordered, and a name occurs once in a list. Names of nested parts are
// joined with dots: "attention.query.weight".
type Named struct {
	Name   string
	Tensor *Tensor
}
