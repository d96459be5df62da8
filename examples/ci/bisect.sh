#!/usr/bin/env bash
# Finds the commit that began to leak. It takes what memdiag gate takes; copy it out of the
# repository first, since git changes what is in there:
#
#   git bisect start BAD GOOD
#   git bisect run /tmp/bisect.sh --every 20 -- python train.py --steps 200
set -u
run=$(mktemp -d) || exit 255
trap 'rm -rf "$run"' EXIT
memdiag gate -q -o "$run/run" "$@"
case $? in
  0) exit 0 ;;   # good
  1) exit 1 ;;   # bad
  2) exit 255 ;; # a wrong command line: git stops
  *) exit 125 ;; # it failed, or cannot tell: git skips the commit
esac
