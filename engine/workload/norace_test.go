//go:build !race

package workload_test

// ledgerSeeds is how many seeds the ledger is held against.
const ledgerSeeds = 3
