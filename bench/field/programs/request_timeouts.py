"""Each request sets a timeout of an hour and does not cancel it when it is answered, so the loop keeps its state; --fixed cancels."""
# kind: services
# holder: _scheduled
# cause: container-grows
# rate: ~21000 B/request
import asyncio
import sys

FIXED = "--fixed" in sys.argv


class Request:
    def __init__(self, number):
        self.number = number
        self.payload = bytes(20_000)  # leak
        self.done = False

    def expire(self):
        if not self.done:
            self.payload = None


async def serve(number):
    loop = asyncio.get_running_loop()
    request = Request(number)
    timeout = loop.call_later(3600, request.expire)  # leak
    value = sum(((number * 17 + i) % 1009) for i in range(6000))
    await asyncio.sleep(0)
    request.done = True
    if FIXED:
        timeout.cancel()
    return value + len(request.payload)


async def main():
    total = 0
    for number in range(9000):
        total += await serve(number)
    print(f"total {total}")


asyncio.run(main())
