"""How hard the docs are to read: python docs/site/readability.py [COMMIT]

Prose alone counts: no code, tables, lists of links or headings. Prints for each page, and for all together, the words, the words
of a sentence, the share of sentences of more than 25 words, and the reading grade by Flesch and Kincaid.
"""

import pathlib
import re
import subprocess
import sys


def prose(text):
    text = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    lines = [line for line in text.split("\n") if not re.match(r"\s*(#|\||!\[|<)", line)]
    text = re.sub(r"^\s*([*-]|\d+\.) ", "\n\n", "\n".join(lines), flags=re.M)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"`[^`]*`", "code", re.sub(r"[*_]{1,2}", "", text))


def sentences(text):
    for part in re.split(r"\n\s*\n", text):
        for s in re.split(r"(?<=[.!?])\s+", " ".join(part.split())):
            words = re.findall(r"[A-Za-z][A-Za-z'’-]*", s)
            if len(words) > 2:
                yield words


def syllables(word):
    groups = len(re.findall(r"[aeiouy]+", word.lower()))
    return max(1, groups - (word.lower().endswith("e") and not word.lower().endswith("le") and groups > 1))


def measure(text):
    found = list(sentences(prose(text)))
    words = sum(map(len, found))
    if not words:
        return 0, 0, 0, 0
    long = sum(len(s) > 25 for s in found) / len(found)
    return words, words / len(found), 100 * long, 0.39 * words / len(found) + 11.8 * sum(syllables(w) for s in found for w in s) / words - 15.59


def pages(commit):
    if commit:
        for name in subprocess.check_output(["git", "ls-tree", "--name-only", commit, "README.md", "docs/"], text=True).split():
            if name.endswith(".md"):
                yield name, subprocess.check_output(["git", "show", commit + ":" + name], text=True)
    else:
        for path in [pathlib.Path("README.md"), *sorted(pathlib.Path("docs").glob("*.md"))]:
            yield str(path), path.read_text()


print("%-24s %7s %9s %8s %6s" % ("page", "words", "sentence", "> 25", "grade"))
everything = ""
for name, text in pages(sys.argv[1] if len(sys.argv) > 1 else None):
    print("%-24s %7d %9.1f %7.0f%% %6.1f" % (name, *measure(text)))
    everything += text + "\n\n"
print("%-24s %7d %9.1f %7.0f%% %6.1f" % ("all", *measure(everything)))
