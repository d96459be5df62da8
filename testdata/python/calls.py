"""Calls of memdiag from Python, in a process that nobody records. Arguments: a run that leaks."""

import functools  # which site imports in many environments
import json
import sys

before = {"gc", *sys.modules}
import memdiag

# Its import takes less than a millisecond, since it imports nothing that takes time.
assert {m for m in set(sys.modules) - before if not m.startswith("memdiag")} == set(), set(sys.modules) - before
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

decision = memdiag.gate(run)
assert decision.verdict == decision["verdict"] == "leak" and str(decision) == decision.sentence
assert decision.leaks[0].place.startswith("engine/workload/feature_pyramid.go:"), decision.leaks[0].place
assert "Pyramid.features" in decision.leaks[0].held_by
shown = decision._repr_html_()
assert "<b>leak</b>" in shown and "feature_pyramid.go" in shown and "Fix: " in shown
decision["sentence"] = "<script>"
assert "<script>" not in decision._repr_html_()
assert memdiag.gate(run, "--max-growth", "10MiB/step").verdict != "leak"
assert json.loads(json.dumps(decision)) == decision and not hasattr(decision, "nonsense")

found = memdiag.diff(run + "/snapshot_0", run + "/snapshot_50")
assert found.findings[0].verdict == "leak" and found.schema_version == 1, found.findings
assert memdiag.diff(run).summary.startswith("1 leak")

for call in lambda: memdiag.diff("there is no such run"), lambda: memdiag.gate("there is no such run"):
    try:
        call()
    except RuntimeError as e:
        assert "there is no such run" in str(e), e
    else:
        raise AssertionError("no error")
