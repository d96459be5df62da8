#!/bin/sh
# Times a training step of the example models beside PyTorch on the CPU, and with and without recording, in one run:
#
#     PYTHON=/path/to/python bench/train.sh [MODEL …]
#
# PYTHON needs torch from PyPI. Each figure is the median over rounds in which all take turns, of a round's median step (for
# recording: of its mean step, since snapshots fall on every fiftieth).
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
rounds=${ROUNDS:-5}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
go build -o "$tmp/train" ./bench/train
[ $# -gt 0 ] || set -- mlp conv transformer
for model; do
	for threads in 1 2; do
		for round in $(seq "$rounds"); do
			"$python" bench/train_peer.py "$model" "$threads" 100 >>"$tmp/torch"
			"$tmp/train" "$model" "$threads" 200 >>"$tmp/ours"
			"$tmp/train" "$model" "$threads" 200 record "$tmp/run$round" >>"$tmp/recorded"
			rm -rf "$tmp/run$round"
		done
		median() { cut -d' ' -f"$2" "$tmp/$1" | sort -n | sed -n "$(((rounds + 1) / 2))p"; }
		awk -v m="$model" -v n="$threads" -v t="$(median torch 1)" -v o="$(median ours 1)" -v p="$(median ours 2)" -v r="$(median recorded 2)" 'BEGIN {
			printf "%-12s %d threads: PyTorch %7.2f ms, ours %7.2f ms: %.2f x; recording %.3f x\n", m, n, t/1000, o/1000, o/t, r/p }'
		rm -f "$tmp/torch" "$tmp/ours" "$tmp/recorded"
	done
done
