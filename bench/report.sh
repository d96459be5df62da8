#!/usr/bin/env bash
# Times memdiag diff, report, flame and plot on a run of 200 snapshots of 20,000 sites, and says
# what memory each takes at most.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
go build -o "$dir/memdiag" ./cmd/memdiag
mkdir "$dir/run"
go run ./bench/report -out "$dir/run" "$@"
du -sh "$dir/run"
for command in "diff $dir/run -o $dir/growth.txt" "report $dir/run -o $dir/report.html" "flame $dir/run -o $dir/flame.svg" "plot $dir/run -o $dir/growth.png"; do
  # shellcheck disable=SC2086
  /usr/bin/time -f "%e s, %U s of processor and %S s of the system's, %M KiB at most: memdiag ${command%% *}" "$dir/memdiag" $command -q
done
ls -l "$dir"/report.html "$dir"/flame.svg
