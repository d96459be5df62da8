"""A crawler's client takes a cookie from each page, of a new name each time, and keeps them all; --fixed clears the jar."""
# kind: services
# holder: cookies _cookies jar client
# cause: container-grows cache-without-bound
# rate: ~3500 B/page
import sys

import httpx

FIXED = "--fixed" in sys.argv


def serve(request):
    number = request.url.params["n"]
    return httpx.Response(200, headers={"set-cookie": f"visit{number}={'x' * 2000}; Path=/page/{number}"}, text="page " + number)


total = 0
with httpx.Client(transport=httpx.MockTransport(serve)) as client:
    for number in range(1500):
        response = client.get(f"http://site.test/page/{number}", params={"n": number})  # leak
        total += len(response.text)
        if FIXED:
            client.cookies.clear()
print(f"total {total}")
