package judge

// Significant is the false discovery rate up to which a trend counts. The other thresholds of the rules are in
// package series.
const Significant = 0.01
