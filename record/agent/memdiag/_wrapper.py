"""The functions that replace those under memdiag.watch. Their own file identifies their frames. These are left out of stacks: they would
look like code of the program, and differ between recordings, since each recording's agent has its own folder."""

import functools

from ._watch import Overlapping

# Flags of a function's code, as in inspect. Calls of such functions end after they return.
GENERATOR, COROUTINE, ASYNC_GENERATOR = 0x20, 0x80, 0x200


def wrapper(watch, function):
    flags = getattr(getattr(function, "__code__", None), "co_flags", 0)

    def watched(*args, **kwargs):
        with watch:
            return function(*args, **kwargs)

    async def awaited(*args, **kwargs):
        with Overlapping(watch):
            return await function(*args, **kwargs)

    def generated(*args, **kwargs):
        with Overlapping(watch):
            return (yield from function(*args, **kwargs))

    async def generated_later(*args, **kwargs):
        items = function(*args, **kwargs)
        with Overlapping(watch):
            try:
                coming = items.asend(None)
                while True:
                    try:
                        item = await coming
                    except StopAsyncIteration:
                        return
                    try:
                        coming = items.asend((yield item))
                    except GeneratorExit:
                        raise
                    except BaseException as e:  # an exception of the caller, for the function
                        coming = items.athrow(e)
            finally:
                await items.aclose()

    kinds = {COROUTINE: awaited, GENERATOR: generated, ASYNC_GENERATOR: generated_later}
    return functools.wraps(function)(kinds.get(flags & (GENERATOR | COROUTINE | ASYNC_GENERATOR), watched))
