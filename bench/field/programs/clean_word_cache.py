"""spaCy reads reports of 2000 words, whose entries it makes when it first meets them; documents are dropped."""
# kind: language
# expect: clean
import random

import spacy

random.seed(0)
nlp = spacy.blank("en")
nlp.add_pipe("sentencizer")
words = ["".join(random.choices("abcdefghij", k=random.randint(3, 8))) for _ in range(2000)]
tokens = 0
for batch in range(200):
    reports = [" ".join(random.choices(words, k=60)) + "." for _ in range(100)]
    for report in nlp.pipe(reports, batch_size=50):
        tokens += len(report)
print(f"tokens {tokens}")
