"""A spaCy component keeps each Doc in a list; --fixed keeps their lengths."""
# kind: language
# holder: docs
# cause: container-grows
# rate: ~9000 B/document
import sys

import spacy
from spacy.language import Language

FIXED = "--fixed" in sys.argv
TEXT = "the quick brown fox jumps over the lazy dog and goes home again " * 6


@Language.factory("audit")
class Audit:
    def __init__(self, nlp, name):
        self.docs = []

    def __call__(self, doc):
        self.docs.append(len(doc) if FIXED else doc)  # leak
        return doc


nlp = spacy.blank("en")
nlp.add_pipe("audit")
for i in range(12000):
    nlp(TEXT)  # leak
print(f"documents {len(nlp.get_pipe('audit').docs)}")
