#!/usr/bin/env bash
# Small programs under the recorder, with several versions of PyTorch: whether they compute the same, and whether leaks are found.
#
#   bench/torch_versions.sh PYTHON…    an interpreter for each version
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/memdiag" ./cmd/memdiag
export PYTHONWARNINGS=ignore

for python in "$@"; do
  version=$("$python" -c 'import torch; print(torch.__version__)')
  for script in testdata/scripts/same_*.py; do
    rm -rf "$work/run"
    # A script that its version cannot run proves nothing.
    "$python" "$script" >"$work/alone" 2>/dev/null || { echo "$version $(basename "$script") does not run alone"; continue; }
    "$work/memdiag" record -o "$work/run" -- "$python" "$script" >"$work/out" 2>"$work/said" || true
    if ! cmp -s "$work/alone" "$work/out" || grep -q Error "$work/said"; then
      echo "$version $(basename "$script") differs: $(grep '^memdiag: ' "$work/said" | tail -1)"
    fi
  done
  for script in testdata/scripts/leak_{metrics,list,hooks,outputs,eval,thread,loader}.py; do
    rm -rf "$work/run"
    "$work/memdiag" record -o "$work/run" -- "$python" "$script" >"$work/out" 2>"$work/said" || { echo "$version $(basename "$script") failed"; continue; }
    code=0
    "$work/memdiag" gate "$work/run" >"$work/gate" 2>/dev/null || code=$?
    [ "$code" = 1 ] && grep -q "leak.* at .*$(basename "$script")" "$work/gate" || echo "$version $(basename "$script") ends the gate with $code: $(head -1 "$work/gate")"
  done
  echo "$version done"
done
