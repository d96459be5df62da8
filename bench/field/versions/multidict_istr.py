"""multidict 6.3.2 leaks an istr for each header that is set."""
# kind: services
# leaky: multidict==6.3.2
# mended: multidict==6.4.3
# met in: aio-libs/multidict#1131
# holder: -
# cause: host-only
# rate: ~1000 B/response
import json

from multidict import CIMultiDict

total = 0
for response in range(60_000):
    headers = CIMultiDict({f"X-Any-{i}": str(i) for i in range(10)})  # leak
    result = CIMultiDict()
    for key, value in headers.items():  # leak
        result.add(key, value)  # leak
    total += len(result) + len(json.dumps([{"id": i, "name": str(response)} for i in range(60)]))
print(f"total {total}")
