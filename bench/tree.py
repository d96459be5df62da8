"""Gates the trees of processes of bench/tree/trees.py: python bench/tree.py [--seconds 12] [NAME …].

Prints for each what the gate said and whether that is right: of a tree that leaks 1, with the line, the process and the holder; 4
with the process where the agent cannot know the line; of one that does not leak 0. Ends with 1 where any is wrong. MEMDIAG is the program; by default it is built.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tree")
sys.path.insert(0, HERE)
import trees  # noqa: E402


def lines_of(name):
    """Where what leaks is made, and where it is kept."""
    with open(os.path.join(HERE, "trees.py"), encoding="utf-8") as f:
        marked = {"trees.py:%d" % number: text.partition("# leak: ")[2].split() for number, text in enumerate(f, 1)}
    return [line for line, of in marked.items() if {name, "all"} & set(of)]


def right(name, code, said):
    """Whether the gate said what is true of a tree."""
    if name not in trees.LEAKS:
        return code == 0
    role, holder, without_line = trees.LEAKS[name]
    all = said.split("\n")
    if without_line:
        return code == without_line and role in all[0]
    held = not holder or any(holder in line for line in all if line.strip().startswith("Held by: "))
    found = re.findall(r" allocated (?:in (.*?) (?:\(as in [^)]*\) )?)?at (?:\S*/)?(\w+\.py:\d+)", said)
    named = [process for process, place in found if place in lines_of(name)]
    return code == 1 and held and any(re.search(r"\b%s\b" % re.escape(role), process) if role else not process for process in named)


def gate(memdiag, name, seconds, folder):
    run = os.path.join(folder, name)
    begun = time.monotonic()
    program = [sys.executable, os.path.join(HERE, "trees.py"), name, str(seconds)]
    env = dict(os.environ, OMP_NUM_THREADS="1")
    done = subprocess.run([memdiag, "gate", "-o", run, "--", *program], capture_output=True, text=True, env=env)
    return done.returncode, done.stdout, done.stderr, time.monotonic() - begun


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seconds", type=float, default=12)
    p.add_argument("--folder", help="where the runs stay")
    p.add_argument("names", nargs="*")
    o = p.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        memdiag = os.environ.get("MEMDIAG")
        if not memdiag:
            memdiag = os.path.join(temporary, "memdiag")
            subprocess.run(["go", "build", "-o", memdiag, "./cmd/memdiag"], check=True, cwd=os.path.dirname(os.path.dirname(HERE)))
        folder = o.folder or temporary
        os.makedirs(folder, exist_ok=True)
        wrong = 0
        print("| tree | leaks | gate | said |")
        print("|---|---|---|---|")
        for name in [*trees.LEAKS, *(tree.__name__ for tree in trees.CLEAN)]:
            if o.names and name not in o.names:
                continue
            code, said, talk, _ = gate(memdiag, name, o.seconds, folder)
            fits = right(name, code, said)
            wrong += not fits
            first = (said.strip() or talk.strip()).split("\n")[0]
            print("| %s | %s | %d%s | %s |" % (name, "yes" if name in trees.LEAKS else "no", code, "" if fits else " **wrong**", first.replace("|", "/")), flush=True)
        print("%d wrong" % wrong)
        return min(1, wrong)


if __name__ == "__main__":
    sys.exit(main())
