#!/bin/sh
# Makes the pictures of README.md anew: docs/growth.png, docs/report.png and docs/report-dark.png.
# It needs Go, Chromium, and a Python with PyTorch: MEMDIAG_TORCH_PYTHON, or what `make torch` installs.
set -eu
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
go build -o "$dir/memdiag" ./cmd/memdiag
(cd "$dir" && ./memdiag -q demo >/dev/null)
# The program of the README's first output.
python=${MEMDIAG_TORCH_PYTHON:-${XDG_CACHE_HOME:-$HOME/.cache}/memdiag/torch/bin/python}
cp testdata/scripts/leak_metrics.py "$dir/train.py"
(cd "$dir" && ./memdiag -q record --every 8 -o my-run -- "$python" train.py >/dev/null)
(cd "$dir" && ./memdiag -q plot -o growth.png my-run >/dev/null)
cp "$dir/growth.png" docs/growth.png
# shot OUTPUT FLAG …: the first 990 rows of the page, 780 pixels wide.
shot() {
	output=$1
	shift
	chromium --headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update \
		--disable-sync --hide-scrollbars --user-data-dir="$dir/profile" --window-size=780,990 --screenshot="$output" "$@" >/dev/null 2>&1
}
shot docs/report.png "file://$dir/memdiag-demo/report.html"
# The dark one begins at the chart. The page's policy allows no script or style but its own, so that
# what stands above it is taken out of the file.
awk '/<header/ { skip = 1 } /<section id="growth">/ { skip = 0 } !skip' "$dir/memdiag-demo/report.html" >"$dir/growth.html"
shot docs/report-dark.png --blink-settings=preferredColorScheme=0 "file://$dir/growth.html"
