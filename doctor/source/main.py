"""Answers one request: JSON on standard input, and on standard output."""

import json
import sys


def main():
    request = json.load(sys.stdin.buffer)  # UTF-8, whatever the locale
    try:
        answer = {"patch": answer_patch, "lint": answer_lint}[request["op"]](request)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
        answer = {"failed": "%s: %s" % (type(e).__name__, e)}
    json.dump(answer, sys.stdout)


main()
