"""A broadcaster in asyncio gives each client a queue, and does not take it back when the client leaves; --fixed does."""
# kind: services
# holder: subscribers
# cause: container-grows queue-without-bound
# rate: ~400 B/message
import asyncio
import sys

FIXED = "--fixed" in sys.argv


class Broadcaster:
    def __init__(self):
        self.subscribers = set()

    def subscribe(self):
        queue = asyncio.Queue()
        self.subscribers.add(queue)  # leak
        return queue

    def publish(self, message):
        for queue in self.subscribers:
            queue.put_nowait(message)  # leak


async def client(broadcaster, count):
    queue = broadcaster.subscribe()
    total = 0
    for _ in range(count):
        total += len(await queue.get())
    if FIXED:
        broadcaster.subscribers.discard(queue)
    return total


async def main():
    broadcaster = Broadcaster()
    totals = 0
    clients = [asyncio.create_task(client(broadcaster, 1000 * i)) for i in range(1, 21)]
    for number in range(20_000):
        await asyncio.sleep(0)
        work = sum((number * 31 + i) % 1013 for i in range(2000))
        broadcaster.publish(f"reading {number}: {work} " * 8)  # leak
    for task in clients:
        totals += await task
    print(f"total {totals}")


asyncio.run(main())
