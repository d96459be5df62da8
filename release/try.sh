#!/usr/bin/env bash
# Builds the release for all platforms, and for this machine again, which must give the same bytes. Installs
# this machine's wheels into empty environments, and has memdiag catch leaks there.
#
#   release/try.sh
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

case $(uname -m) in
  x86_64) goarch=amd64 arch=x86_64 ;;
  aarch64 | arm64) goarch=arm64 arch=aarch64 ;;
  *) echo "no wheel for $(uname -m)"; exit 1 ;;
esac
fail() { echo "$*"; exit 1; }

go build -o "$work/release" ./release
"$work/release" -o "$work/dist" -trial all 2>"$work/log" || fail "$(cat "$work/log")"
cat "$work/log"
"$work/release" -o "$work/again" -only "linux-$goarch" -trial all 2>"$work/log" || fail "$(cat "$work/log")"
rm "$work/again/SHA256SUMS"
for file in "$work"/again/*; do cmp "$file" "$work/dist/${file##*/}"; done

# The archives are whole, and have what belongs beside a program.
(cd "$work/dist" && sha256sum --quiet -c SHA256SUMS && (($(wc -l <SHA256SUMS) == $(ls | wc -l) - 1)))
for target in "linux-$goarch" "linux-$goarch-static"; do
  tar xzf "$work"/dist/memdiag-*-"$target".tar.gz -C "$work"
  unpacked=$(echo "$work"/memdiag-*-"$target")
  "$unpacked/memdiag" version
  bash -n "$unpacked/completion/memdiag.bash"
  grep -q '^.TH "MEMDIAG\\-GATE"' "$unpacked/man/man1/memdiag-gate.1" && cmp "$unpacked/sbom.cdx.json" "$work"/dist/memdiag-*-"$target".cdx.json
  test -s "$unpacked/LICENSE" -a -s "$unpacked/NOTICE"
done

# A release draws what an ordinary build draws, though it has fewer fonts.
go build -o "$work/ordinary" ./cmd/memdiag
for program in "$work/ordinary" "$unpacked/memdiag"; do
  folder=$work/drawn-by-${program##*/}
  "$program" demo -q -o "$folder" >/dev/null
  for kind in svg png pdf; do "$program" plot -q -o "$folder.$kind" "$work/drawn-by-ordinary"; done
done
for kind in svg png pdf; do cmp "$work/drawn-by-ordinary.$kind" "$work/drawn-by-memdiag.$kind" || fail "a release's $kind is another"; done

# tries COMMAND… has the memdiag that a command starts catch leaks, in a folder of its own.
tries() {
  (
    mkdir -p "$work/$1" && cd "$work/$1"
    shift
    "$@" demo -q >demo.txt
    grep -q '^1 leak: +512 KiB/step' demo.txt && test -s memdiag-demo/report.html || fail "the demo: $(cat demo.txt)"
    printf '%s\n' 'from memdiag import mark' 'kept = []' 'for step in range(1, 121):' '    kept.append([bytearray(4096) for _ in range(50)])' '    mark(step=step)' >train.py
    code=0
    "$@" gate -q --every 10 --python-heap on -- "$python" train.py >gate.txt || code=$?
    ((code == 1)) && grep -q 'train.py:4' gate.txt || fail "the gate ended with $code: $(cat gate.txt)"
  )
}

# Where glibc is: as pip chooses it. The command and python -m are one; nothing is written beside
# the package; and the agent in the binary is the one that is installed.
python3 -m venv "$work/venv"
python=$work/venv/bin/python
"$python" -m pip install -q --disable-pip-version-check --no-index --find-links "$work/dist" memdiag
package=$("$python" -c 'import memdiag; print(memdiag.__path__[0])')
before=$(find "$package" -type f -exec sha256sum {} + | sort)
tries command "$work/venv/bin/memdiag"
# Another memdiag may be first on PATH; the package calls its own, or says why it cannot.
mkdir "$work/other" && printf '#!/bin/sh\necho another memdiag\n' >"$work/other/memdiag" && chmod +x "$work/other/memdiag"
[[ $(PATH=$work/other:$PATH "$python" -m memdiag version) == "$("$work/venv/bin/memdiag" version)" ]] || fail "python -m memdiag is another memdiag"
chmod -x "$work/venv/bin/memdiag"
"$python" -m memdiag version 2>"$work/said.txt" && fail "a program ran that may not be executed"
grep -q "may not be executed" "$work/said.txt" || fail "$(cat "$work/said.txt")"
chmod +x "$work/venv/bin/memdiag"
# uvx makes an environment for memdiag alone in uv's cache, whose python is not the one that is meant.
tool=$work/uv/archive-v0/tool
python3 -m venv --without-pip "$tool"
touch "$work/uv/CACHEDIR.TAG"
"$python" -m pip install -q --disable-pip-version-check --no-index --find-links "$work/dist" --ignore-installed --prefix "$tool" memdiag
(cd "$work" && PATH=$tool/bin:$work/venv/bin:$PATH memdiag record -q -o uvx -- python -c 'import sys; print(sys.prefix)') >"$work/prefix.txt"
grep -qx "$work/venv" "$work/prefix.txt" || fail "uvx: python is of $(cat "$work/prefix.txt")"
[[ $before == "$(find "$package" -type f -exec sha256sum {} + | sort)" ]] || fail "something was written to $package"
unpacked=$(XDG_CACHE_HOME=$work/cache "$work/venv/bin/memdiag" python-path)
diff -r -x __pycache__ "$package" "$unpacked/memdiag"
"$python" -c 'from importlib.metadata import entry_points; (plugin,) = entry_points(group="pytest11", name="memdiag.pytest"); assert plugin.value == plugin.name'

# Where musl is: the binary needs no library.
"$python" -m pip install -q --disable-pip-version-check --no-index --no-deps --only-binary :all: --platform "musllinux_1_1_$arch" --target "$work/musl" --find-links "$work/dist" memdiag
! ldd "$work/musl/bin/memdiag" >/dev/null 2>&1 || fail "the static binary needs libraries"
PYTHONPATH=$work/musl tries musl python3 -m memdiag

# What cannot run here was inspected as it was built; pip finds each by its platform.
for wheel in manylinux{2014,_2_17}_{x86_64,aarch64} musllinux_1_1_{x86_64,aarch64} macosx_12_0_{x86_64,arm64}; do
  platform=${wheel/macosx_12/macosx_15} # a newer macOS takes it, too
  "$python" -m pip download -q --disable-pip-version-check --no-index --no-deps --only-binary :all: --python-version 3.10 --platform "$platform" --find-links "$work/dist" -d "$work/$wheel" memdiag
  test -e "$work/$wheel"/memdiag-*"$wheel"*.whl || fail "for $platform pip chose $(ls "$work/$wheel")"
done

# Where no wheel fits: pip says so.
! "$python" -m pip install --disable-pip-version-check --no-index --no-build-isolation --no-binary :all: --force-reinstall --find-links "$work/dist" memdiag >"$work/refused.txt" 2>&1 ||
  fail "the source distribution was installed"
grep -q 'memdiag has no wheel for this machine or this Python' "$work/refused.txt" || fail "$(cat "$work/refused.txt")"
mkdir "$work/source" # as a pip before 10 runs it
tar xzf "$(ls "$work"/dist/*.tar.gz | grep -v -e -linux- -e -darwin-)" -C "$work/source" --strip-components 1
! (cd "$work/source" && "$python" setup.py egg_info) 2>"$work/refused.txt" || fail "setup.py does not refuse"
grep -q 'memdiag has no wheel' "$work/refused.txt" || fail "$(cat "$work/refused.txt")"
echo "release/try.sh: all checks passed"
