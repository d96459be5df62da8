#!/usr/bin/env bash
# Builds the docs as a site into .cache/site/html, with the reference of the commands as they describe themselves.
# Fails on a link or an anchor that leads nowhere, and on a page that the navigation leaves out.
#
#   pip install mkdocs-material==9.8.2
#   docs/site/build.sh [MKDOCS]
set -euo pipefail
cd "$(dirname "$0")/../.."
mkdocs=${1:-mkdocs}

pages=.cache/site/docs
rm -rf .cache/site && mkdir -p "$pages"
cp -R docs/*.md docs/*.png docs/schema "$pages"
go build -o .cache/site/memdiag ./cmd/memdiag
{
  printf '# Commands\n\nEach command describes itself: `memdiag COMMAND --help`.\n'
  .cache/site/memdiag man -q -o .cache/site/man
  for page in .cache/site/man/memdiag-*.1; do
    name=${page##*/memdiag-} name=${name%.1}
    printf '\n## %s\n\n```text\n%s\n```\n' "$name" "$(NO_COLOR=1 .cache/site/memdiag "${name}" --help 2>/dev/null || NO_COLOR=1 .cache/site/memdiag ${name//-/ } --help)"
  done
} >"$pages/commands.md"
# What lies outside docs/ is named by its address.
sed -i 's#](\.\./\([^)]*\))#](https://github.com/memdiag/memdiag/blob/main/\1)#g' "$pages"/*.md
NO_MKDOCS_2_WARNING=1 "$mkdocs" build --strict
for page in index start-pytorch commands; do
  test -s ".cache/site/html/${page/#index//}/index.html" || { echo "no page $page"; exit 1; }
done
grep -q 'start-pytorch/' .cache/site/html/search/search_index.json
