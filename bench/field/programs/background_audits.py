"""A service holds its background tasks in a list, so that they are not collected, and never takes one out; --fixed discards those that are done."""
# kind: services
# holder: background
# cause: container-grows
# rate: ~9000 B/request
import asyncio
import sys

FIXED = "--fixed" in sys.argv
background = []


async def audit(request, body):
    await asyncio.sleep(0)
    return {"request": request, "words": [f"{request}-{word}" for word in body.split()]}  # leak


async def handle(request):
    body = " ".join(f"word{(request * i) % 997}" for i in range(80))
    task = asyncio.create_task(audit(request, body))  # leak
    background.append(task)  # leak
    if FIXED:
        task.add_done_callback(background.remove)
    value = sum(((request * 31 + i) % 1013) ** 2 for i in range(1500))
    await asyncio.sleep(0)
    return value


async def main():
    total = 0
    for group in range(2600):
        total += sum(await asyncio.gather(*(handle(group * 10 + i) for i in range(10))))
    print(f"total {total}")


asyncio.run(main())
