"""Background tasks are put into a set, so that they are not collected, and never leave it; --fixed discards them."""
# kind: services
# holder: background
# cause: container-grows
# rate: ~5500 B/request
# met in: pnbruckner/ha-life360#101
import asyncio
import hashlib
import sys

FIXED = "--fixed" in sys.argv
background = set()


async def notify(request):
    await asyncio.sleep(0)
    digest = hashlib.sha256(str(request).encode())
    for _ in range(200):
        digest.update(digest.digest())
    return digest.hexdigest() * 80  # leak


async def handle(request):
    task = asyncio.create_task(notify(request))  # leak
    background.add(task)  # leak
    if FIXED:
        task.add_done_callback(background.discard)
    await asyncio.sleep(0)
    return request % 97


async def main():
    total = 0
    for first in range(0, 40_000, 20):
        total += sum(await asyncio.gather(*(handle(request) for request in range(first, first + 20))))
    return total


print(f"total {asyncio.run(main())}")
