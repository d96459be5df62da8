#!/bin/sh
# Makes cmd/memdiag/default.pgo anew, the profile by which Go's compiler lays out what reads and compares snapshots
# (https://go.dev/doc/pgo):
#
#     bench/profile.sh
#
# It wants ../shared/data, and a machine with little else to do. An old profile costs speed, never correctness.
set -eu
cd "$(dirname "$0")/.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
profile() { # NAME PACKAGE BENCHMARK TIME
	go test -run '^$' -bench "$3" -benchtime "$4" -cpuprofile "$tmp/$1.prof" -o "$tmp/$1.test" "$2"
}
profile torch ./snapshot/torch Decode 3s
profile native ./snapshot/native Decode 1s
profile diff ./diff 'Pair|Analyze' 2s
go tool pprof -proto "$tmp"/*.prof >"$tmp/default.pgo"
mv "$tmp/default.pgo" cmd/memdiag/default.pgo
