#!/bin/sh
# Measures the reader of PyTorch snapshots beside CPython's pickle.load, in one run on one machine:
#
#     bench/torch_reader.sh [--large] [FILE …]
#
# Without FILEs it takes those in ../shared/data/torch and, where ../shared/tools has the generator, files of about 50 MB
# with frames shared and not shared; with --large also of 500 MB and 2 GB, for which CPython takes 10 GB of memory. A line
# a file: the reader's speed, how many times that of CPython with its collector on and off (plain, then with a restricted
# Unpickler), both by processor time and the best of several readings, and peak memory.
set -eu
cd "$(dirname "$0")/.."
shared=${MEMDIAG_SHARED:-../shared}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
go build -o "$tmp/torch_reader" ./bench/torch_reader

large=
if [ "${1-}" = --large ]; then
	large=1
	shift
fi
generate() { # EVENTS NAME
	python3 "$shared/tools/gen_torch_snapshots.py" --out "$tmp/$2" --steps 1 --every 1 --events "$1" >"$tmp/log"
	mv "$tmp/$2/snapshot_1.pickle" "$tmp/$2.pickle"
}
if [ $# -eq 0 ]; then
	set -- "$shared"/data/torch/*.p*k*
	if [ -f "$shared/tools/gen_torch_snapshots.py" ]; then
		generate 500000 generated_50MB
		# JSON has no references: what is read from it shares keys, and nothing else.
		python3 - "$tmp/generated_50MB.pickle" "$tmp/unshared.pickle" <<-'PY'
			import json, pickle, sys
			d = pickle.load(open(sys.argv[1], "rb"))
			d["device_traces"] = [t[:len(t) // 8] for t in d["device_traces"]]
			pickle.dump(json.loads(json.dumps(d)), open(sys.argv[2], "wb"), protocol=4)
		PY
		set -- "$@" "$tmp/generated_50MB.pickle" "$tmp/unshared.pickle"
		if [ -n "$large" ]; then
			generate 5000000 generated_500MB
			generate 20000000 generated_2GB
			set -- "$@" "$tmp/generated_500MB.pickle" "$tmp/generated_2GB.pickle"
		fi
	fi
fi

printf '%-46s %8s %7s | %s | %s | %s\n' file MB MB/s "times CPython: gc on, off" "restricted: gc on, off" "peak MiB, CPython's, ratio"
for f in "$@"; do
	bytes=$(wc -c <"$f")
	n=5
	if [ "$bytes" -gt 1000000000 ]; then n=1; elif [ "$bytes" -gt 200000000 ]; then n=3; elif [ "$bytes" -lt 5000000 ]; then n=20; fi
	go=$("$tmp/torch_reader" -n "$n" "$f")
	peak=$("$tmp/torch_reader" -n 1 "$f")
	[ "$n" -gt 5 ] && m=5 || m=$(((n + 1) / 2))
	py=
	for how in plain restricted; do
		for gc in on off; do
			py="$py $(python3 bench/torch_reader.py "$f" $how $gc "$m")"
		done
	done
	once=$(python3 bench/torch_reader.py "$f" plain on 1)
	echo "$bytes $go $peak $once $py $(basename "$f")" | awk '{
		printf "%-46s %8.1f %7.0f | %7.1f %7.1f          | %7.1f %7.1f       | %7.1f %7.1f %7.2f\n", $21, $1 / 1e6, $1 / 1e6 / $2,
			$9 / $2, $12 / $2, $15 / $2, $18 / $2, $5 / 1024, $7 / 1024, $5 / $7 }'
done
