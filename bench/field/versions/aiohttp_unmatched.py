"""With a middleware, aiohttp 3.10.10 caches a handler for each request that matches no route."""
# kind: services
# leaky: aiohttp==3.10.10
# mended: aiohttp==3.10.11
# met in: aio-libs/aiohttp#9852
# holder: _build_middlewares _cached_build_middleware
# cause: cache-without-bound
# rate: ~2000 B/request
import asyncio
import logging

from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer

logging.disable(logging.CRITICAL)


@web.middleware
async def answer_errors(request, handler):
    try:
        return await handler(request)  # leak
    except web.HTTPNotFound:
        return web.json_response({"error": "no such page"}, status=404)


async def main():
    app = web.Application(middlewares=[answer_errors])
    statuses = 0
    async with TestServer(app) as server, ClientSession() as session:
        for i in range(8000):
            async with session.get(server.make_url(f"/page/{i}")) as response:  # leak
                statuses += response.status
                await response.read()
    return statuses


print(f"statuses {asyncio.run(main())}")
