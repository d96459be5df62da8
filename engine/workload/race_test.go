//go:build race

package workload_test

// ledgerSeeds is how many seeds the ledger is held against: under the race detector
// training takes ten times as long, and what ranks and workers share does not depend
// on the seed.
const ledgerSeeds = 1
