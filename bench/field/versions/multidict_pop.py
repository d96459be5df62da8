"""multidict before 6.6.4 leaks what is popped."""
# kind: services
# leaky: multidict==6.6.3
# mended: multidict==6.6.4
# met in: aio-libs/multidict#1232
# holder: -
# cause: host-only
# rate: ~300 B/request
from multidict import CIMultiDict

total = 0
for request in range(300_000):
    headers = CIMultiDict({"Host": "example", "X-Request-Id": f"request {request} of many with a long value"})  # leak
    total += len(headers.pop("X-Request-Id"))  # leak
print(f"total {total}")
