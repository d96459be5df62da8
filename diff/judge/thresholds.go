package judge

// The thresholds of the rules. Those that read a series are series'.
const (
	// Significant is the false discovery rate at which a trend counts.
	Significant = 0.01
	// fewFalse is the share of chance that is let pass among those that few marks
	// show to grow.
	fewFalse = 0.05
)
