"""spaCy sees ever new words (request ids), and its vocabulary keeps each; --fixed masks them."""
# kind: language
# holder: nlp vocab
# cause: cache-without-bound container-grows host-only
# rate: ~3000 B/document
# met in: explosion/spaCy#5083
import sys

import spacy

FIXED = "--fixed" in sys.argv
nlp = spacy.blank("en")
number = 0
for i in range(12000):
    words = []
    for _ in range(12):
        number += 1
        words.append("request1d" if FIXED else "req%08x" % (number * 2654435761 % 2**32))
    doc = nlp("the call " + " ".join(words) + " was served.")  # leak
    assert len(doc) >= 12
print(f"documents {i + 1}")
