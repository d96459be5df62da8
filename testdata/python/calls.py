"""Calls of memdiag from Python, in a process that nobody records. Arguments: a run that leaks."""

import functools  # which site imports in many environments
import json
import sys

before = {"gc", *sys.modules}
import memdiag

# Its import takes less than a millisecond, since it imports nothing that takes time.
assert {m for m in set(sys.modules) - before if not m.startswith("memdiag")} <= {"fcntl"}, set(sys.modules) - before  # a lock says that the unpacked version is in use
run = sys.argv[1]

# Without the recorder these do nothing.
memdiag.mark(step=1, phase="train")
assert memdiag.snapshot() is None
with memdiag.watch("nothing") as w:
    pass
assert (w.calls, w.tensors, w.bytes, w.held_by) == (0, 0, 0, "")


@memdiag.watch("function")
def add(a, *, b=2):
    "Adds."
    return a + b


assert add(1, b=3) == 4 and add.__name__ == "add" and add.__doc__ == "Adds."

# Coroutine functions and generators stay what they are, with what is sent and thrown into them.
import asyncio
import inspect


@memdiag.watch("coroutine")
async def double(a):
    await asyncio.sleep(0)
    return 2 * a


@memdiag.watch("generator")
def echo(n):
    got = []
    for i in range(n):
        try:
            got.append((yield i))
        except KeyError:
            got.append("caught")
    return got


@memdiag.watch("asynchronous generator")
async def later(n):
    try:
        for i in range(n):
            try:
                got = yield i
            except KeyError:
                got = "caught"
            if got:
                yield got
    finally:
        closed.append(n)


async def use():
    assert await asyncio.gather(double(1), double(2)) == [2, 4]
    assert [i async for i in later(3)] == [0, 1, 2]
    items = later(2)
    assert await items.asend(None) == 0 and await items.asend("sent") == "sent"
    assert await items.asend(None) == 1 and await items.athrow(KeyError()) == "caught"
    await items.aclose()


closed = []
asyncio.run(use())
assert closed == [3, 2], closed
assert inspect.iscoroutinefunction(double) and inspect.isgeneratorfunction(echo) and inspect.isasyncgenfunction(later) and echo.__name__ == "echo"
items = echo(2)
assert next(items) == 0 and items.send("sent") == 1
try:
    items.throw(KeyError())
except StopIteration as e:
    assert e.value == ["sent", "caught"], e.value

decision = memdiag.gate(run)
assert decision.verdict == decision["verdict"] == "leak" and str(decision) == decision.sentence
assert decision.leaks[0].place.startswith("engine/workload/feature_pyramid.go:"), decision.leaks[0].place
assert "Pyramid.features" in decision.leaks[0].held_by
shown = decision._repr_html_()
assert "<b>leak</b>" in shown and "feature_pyramid.go" in shown and "Fix: " in shown and "budget" not in shown
shown = memdiag.gate(run, "--max-peak", "cpu:0=1KiB", "--max-live", "cpu:0=1TiB")._repr_html_()
assert "<code>--max-peak cpu:0=1KiB</code> (budget broken)" in shown and "(budget kept)</dt><dd>within budget: cpu:0 has " in shown, shown
decision["sentence"] = "<script>"
assert "<script>" not in decision._repr_html_()
assert memdiag.gate(run, "--max-growth", "10MiB/step").verdict != "leak" and memdiag.gate(run, "--warmup", 20).verdict == "leak"
assert json.loads(json.dumps(decision)) == decision and not hasattr(decision, "nonsense")

found = memdiag.diff(run + "/snapshot_0", run + "/snapshot_50")
assert found.findings[0].verdict == "leak" and found.schema_version == 1, found.findings
assert memdiag.diff(run).summary == memdiag.diff(run.encode()).summary and memdiag.diff(run).summary.startswith("1 leak")

for call in lambda: memdiag.diff("there is no such run"), lambda: memdiag.gate("there is no such run"):
    try:
        call()
    except RuntimeError as e:
        assert "there is no such run" in str(e), e
    else:
        raise AssertionError("no error")

for wrong in memdiag.snapshot(), 3, [run]:
    for call in memdiag.diff, memdiag.gate:
        try:
            call(wrong)
        except TypeError as e:
            assert str(e).startswith("memdiag takes a path, not %r" % (wrong,)), e
        else:
            raise AssertionError("no error")
