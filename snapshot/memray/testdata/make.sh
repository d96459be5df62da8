#!/bin/sh
# Makes the pages in this folder and the table of the same recording: memray 1.20 as
# $PYTHON on the program of testdata/profilers. Of the pages memray's own scripts and
# styles are cut out, which are long lines without the data. $OLD_PYTHON has memray 1.5,
# whose pages are others.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cp "$here/../../../testdata/profilers/leak_python.py" .

"$python" -m memray run --quiet --output memray.bin leak_python.py 20
"$python" -m memray transform csv --leaks --output recording.csv memray.bin >/dev/null
"$python" -m memray flamegraph --leaks --output flamegraph.html memray.bin >/dev/null
"$python" -m memray flamegraph --leaks --inverted --output inverted.html memray.bin >/dev/null
"$python" -m memray flamegraph --leaks --temporal --output temporal.html memray.bin >/dev/null
"$python" -m memray table --leaks --output table.html memray.bin >/dev/null
"$OLD_PYTHON" -m memray run --quiet --output old.bin leak_python.py 20
"$OLD_PYTHON" -m memray transform csv --leaks --output old_recording.csv old.bin >/dev/null
"$OLD_PYTHON" -m memray flamegraph --leaks --output old_flamegraph.html old.bin >/dev/null
"$OLD_PYTHON" -m memray table --leaks --output old_table.html old.bin >/dev/null
for page in *.html; do
	awk 'length < 500 || /packed_data = |const data = /' "$page" | gzip -n9 >"$here/$page.gz"
done
cp recording.csv old_recording.csv "$here"
