"""Half a million small strings are made and dropped early; glibc and Python keep their memory, and nothing else grows."""
# kind: services
# expect: clean
import hashlib
import json


def index_of(texts):
    table = {}
    for text in texts:
        table.setdefault(hashlib.md5(text.encode()).hexdigest()[:4], []).append(text)
    return sum(len(entries) for entries in table.values())


total = 0
for request in range(15_000):
    size = 200_000 if request in (500, 1250) else 120
    total += index_of(f"text {i} of request {request} with some words" for i in range(size))
    total += len(json.dumps({str(i): [request] * 8 for i in range(100)}))
print(f"total {total}")
