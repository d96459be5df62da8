package snapshot

// Losses are what a recorder saw of a program's losses, in their order.
type Losses struct {
	Backward []Loss // that were taken backward
	Marked   []Loss // that the program marked
}

// Loss is the loss of one step, with all its bits.
type Loss struct {
	Step  int64 // in which it was computed
	Value float64
}
