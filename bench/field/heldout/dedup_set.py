"""A stream of documents is deduplicated by a set of all texts ever seen; --fixed keeps the hashes of the newest 5,000."""
# kind: language
# holder: seen
# cause: container-grows cache-without-bound
# rate: ~550 B/document
import collections
import hashlib
import random
import sys

FIXED = "--fixed" in sys.argv
random.seed(0)
WORDS = [f"word{i}" for i in range(2000)]


class Deduplicator:
    def __init__(self):
        self.seen = collections.OrderedDict() if FIXED else set()

    def is_new(self, text):
        if FIXED:
            key = hashlib.blake2b(text.encode(), digest_size=16).digest()
            if key in self.seen:
                return False
            self.seen[key] = True
            if len(self.seen) > 5000:
                self.seen.popitem(last=False)
            return True
        if text in self.seen:
            return False
        self.seen.add(text)  # leak
        return True


deduplicator = Deduplicator()
counts = collections.Counter()
for i in range(200_000):
    text = " ".join(random.choices(WORDS, k=50))  # leak
    if deduplicator.is_new(text):
        counts.update(text.split())
print(f"words {sum(counts.values())}")
