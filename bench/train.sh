#!/bin/sh
# Times a training step of the example models beside PyTorch on the CPU, and with and without recording, in one run:
#
#     PYTHON=/path/to/python bench/train.sh [MODEL …]
#
# PYTHON needs torch from PyPI. Each figure is the median over rounds in which all take turns, of a round's median step (for
# recording: of its mean step, since snapshots fall on every fiftieth). Ratios in brackets are of processor time, which other
# work on the machine does not change so much; it says little about two threads, since those that wait look for work.
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
		echo "$(median torch 1) $(median ours 1) $(median torch 3) $(median ours 3) $(median ours 2) $(median recorded 2) $(median ours 4) $(median recorded 4)" |
			awk -v m="$model" -v n="$threads" '{
				printf "%-12s %d threads: PyTorch %7.2f ms, ours %7.2f ms: %.2f x (%.2f); recording %.3f x (%.3f)\n",
					m, n, $1 / 1000, $2 / 1000, $2 / $1, $4 / $3, $6 / $5, $8 / $7 }'
		rm -f "$tmp/torch" "$tmp/ours" "$tmp/recorded"
	done
done
