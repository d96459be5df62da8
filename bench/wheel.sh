#!/usr/bin/env bash
# The wheel beside memray's: installing, importing, and the way to the first line of a leaking training.
#
#   bench/wheel.sh DIST PYTHON    DIST: the folder of make wheel; PYTHON: an interpreter with PyTorch
set -euo pipefail
dist=$(realpath "$1") python=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# timed NAME COMMAND… runs a command, and prints its seconds.
timed() {
  local name=$1 begun
  shift
  begun=$(date +%s%N)
  "$@" >out 2>&1 || { cat out; return 1; }
  printf '%-24s %s s\n' "$name" "$(awk "BEGIN {printf \"%.2f\", ($(date +%s%N) - $begun) / 1e9}")"
}

# imports NAME PYTHON prints the milliseconds of five imports.
imports() {
  printf '%-24s' "import $1"
  for _ in 1 2 3 4 5; do
    "$2" -X importtime -c "import $1" 2>&1 | awk -F'|' 'END {printf " %.2f", $2 / 1000}'
  done
  echo ' ms'
}

cat >train.py <<'END'
import torch

model = torch.nn.Linear(32, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
seen = []
for step in range(300):
    loss = model(torch.randn(16, 32)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    seen.append(loss)
END
for tool in memdiag memray; do
  "$python" -m venv "$tool"
done
timed 'install memdiag' memdiag/bin/pip install --no-index --find-links "$dist" memdiag
timed 'install memray' memray/bin/pip install memray
imports memdiag memdiag/bin/python
imports memray memray/bin/python
"$python" train.py # brings PyTorch into the page cache
timed 'plain' "$python" train.py
timed 'memdiag record' memdiag/bin/memdiag record -o run -- "$python" train.py
timed 'memdiag diff' memdiag/bin/memdiag diff run
cp out said
PYTHONPATH=$(echo "$PWD"/memray/lib/python*/site-packages)
export PYTHONPATH
timed 'memray run' "$python" -m memray run -q -o train.bin train.py
timed 'memray flamegraph' "$python" -m memray flamegraph --leaks -o train.html train.bin
head -1 said
