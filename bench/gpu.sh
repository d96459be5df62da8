#!/bin/sh
# Proves memdiag on a real GPU: bench/gpu.sh [--report FILE] [--stand-in]; more in bench/gpu.py. Where the machine lacks
# Vulkan's loader, Debian's package is unpacked into a folder of its own.
set -eu
if ! ldconfig -p | grep -q libvulkan.so.1 && command -v apt-get >/dev/null; then
	loader=$(mktemp -d)
	trap 'rm -rf "$loader"' EXIT
	if (cd "$loader" && apt-get download -qq libvulkan1 && dpkg -x libvulkan1_*.deb .); then
		LD_LIBRARY_PATH=$(dirname "$(find "$loader" -name libvulkan.so.1)")
		export LD_LIBRARY_PATH
	else
		echo "bench/gpu.sh: Vulkan's loader is not here and cannot be had; our engine's parts will fail" >&2
	fi
fi
"${PYTHON:-python3}" "$(dirname "$0")/gpu.py" "$@"
