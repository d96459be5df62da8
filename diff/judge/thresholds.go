package judge

// Significant is the false discovery rate at which a trend counts. The other thresholds of the rules read a series, and are series'.
const Significant = 0.01
