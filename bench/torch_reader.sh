#!/bin/sh
# Measures the reader of PyTorch snapshots beside CPython's pickle.load, in one run on one machine:
#
#     bench/torch_reader.sh [--large] [FILE …]
#
# Without FILEs it takes those in ../shared/data/torch and, where ../shared/tools has the generator, files of about 50 MB
# with frames shared and not shared; with --large also of 500 MB and 2 GB, for which CPython takes 10 GB of memory. A line
# a file: the reader's speed; how many times that of CPython with its collector on and off, in a process that reads the
# file again and again; the same of whole processes, memdiag show and python3 -c pickle.load; and peak memory. memdiag and
# CPython take turns, by processor time, and the medians of $ROUNDS (5) rounds count.
set -eu
cd "$(dirname "$0")/.."
shared=${MEMDIAG_SHARED:-../shared}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
go build -pgo=cmd/memdiag/default.pgo -o "$tmp/torch_reader" ./bench/torch_reader

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

go build -o "$tmp/memdiag" ./cmd/memdiag
python3 bench/torch_reader_turns.py "$tmp/torch_reader" "$tmp/memdiag" "${ROUNDS:-5}" "$@"
