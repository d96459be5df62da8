#!/bin/sh
# Scores memdiag on the field set beside what people use in its place, as bench/field/README.md describes:
#
#     bench/field.sh [FLAG … of bench/field/score.py] [PROGRAM …]
#
# Installs the environments below ~/.cache/memdiag first (some 6 GB). memdiag alone takes an hour and a half with --jobs 1 on two cores, and
# the other tools longer. Says on standard error how far it is, and goes on where it ended. --json gives the table as JSON.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3.11}
"$python" bench/field/install.py
"$python" bench/field/install.py versions >&2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
go build -o "$tmp/memdiag" ./cmd/memdiag
"$python" bench/field/score.py --memdiag "$tmp/memdiag" --peers "$@"
