"""A plugin for pytest: a test with this mark fails if its steps leak.

    @pytest.mark.memdiag(max_growth="0B/step")
    def test_training_keeps_nothing():
        train(steps=100)

If memdiag is installed by pip, pytest loads the plugin by itself. Otherwise pytest -p memdiag.pytest loads it, and memdiag python-path
prints its folder. A marked test runs in a separate process under memdiag gate, so that neither objects nor delays of other tests affect
it. Steps are those of PyTorch's optimizers, or those that the test marks with memdiag.mark.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

import pytest

import memdiag
from memdiag import _calls

# Set in the process that is recorded: the file to which it writes how its test went.
CHILD = "MEMDIAG_PYTEST"
# Leaks that the message of a failure shows, at most.
SHOWN = 5
# The options of a mark, with their defaults. They are flags of memdiag gate.
OPTIONS = {"max_growth": "0B/step", "warmup": 0, "every": 5, "inconclusive": "fail"}


def pytest_configure(config):
    config.addinivalue_line("markers", "memdiag(%s): fail if the test's steps leak" % ", ".join("%s=%r" % o for o in OPTIONS.items()))


def pytest_collection_modifyitems(config, items):
    if os.environ.get(CHILD):
        return
    for item in items:
        mark = item.get_closest_marker("memdiag")
        if mark is not None:
            item.runtest = lambda item=item, options=options_of(item, mark): judge(item, options)
            if config.pluginmanager.hasplugin("tmpdir"):
                item.fixturenames.append("tmp_path_factory")


def options_of(item, mark):
    unknown = [*map(repr, mark.args), *(set(mark.kwargs) - set(OPTIONS))]
    if unknown:
        raise pytest.UsageError("%s: the mark memdiag takes %s, not %s" % (item.nodeid, ", ".join(OPTIONS), ", ".join(unknown)))
    return {**OPTIONS, **mark.kwargs}


def judge(item, options):
    """Runs the test under memdiag gate, and ends as the test or the gate does.

    If the gate fails the test, or the test's process dies, the run is kept among pytest's temporary folders. pytest deletes those of older sessions.
    """
    config, factory = item.config, item.funcargs.get("tmp_path_factory")
    folder = tempfile.mkdtemp(prefix="memdiag-pytest-", dir=factory.getbasetemp() if factory else None)
    keep = False
    try:
        went, decision, run = (os.path.join(folder, name) for name in ("went.json", "gate.json", "run"))
        command = ["gate", "--quiet", "--json", decision, "-o", run]
        for name, value in options.items():
            command += ["--" + name.replace("_", "-"), str(value)]
        command += ["--", sys.executable, "-m", "pytest", "-p", "memdiag.pytest", "-o", "cache_dir=" + os.path.join(folder, "cache"), "--rootdir", str(config.rootpath)]
        # addopts may ask for more: a choice among tests, which was made already; processes for tests; and a share of lines to cover, which
        # one test does not reach.
        command += ["-m", "", "-k", ""]
        for plugin, without in (("xdist", ["-n", "0"]), ("pytest_cov", ["--no-cov"])):
            if config.pluginmanager.hasplugin(plugin):
                command += without
        if config.inipath:
            command += ["-c", str(config.inipath)]
        try:
            done = _calls.start(command + [item.nodeid], cwd=config.rootpath, env={**os.environ, CHILD: went}, stderr=subprocess.STDOUT)
        except RuntimeError as e:
            pytest.fail("%s; it judges this test" % e, pytrace=False)
        output = done.stdout.decode("utf-8", "replace")
        test = read(went)
        if test is None:
            keep = os.path.isdir(run)  # the gate's hint names it
            pytest.fail("%s gate ended with code %d before the test did:\n%s" % (done.args[0], done.returncode, output), pytrace=False)
        if test["outcome"] == "skipped":
            pytest.skip(test["text"])
        if test["outcome"] == "xfailed":
            pytest.xfail(test["text"])
        if test["outcome"] == "failed":
            pytest.fail(test["text"], pytrace=False)
        # Without steps, the test would be judged by time, and the result would depend on the machine's speed.
        if not test["steps"] and options["inconclusive"] != "pass":
            pytest.fail("the test made no step that memdiag sees: optimizers of PyTorch make them, or memdiag.mark(step=n)", pytrace=False)
        if done.returncode != 0:
            told, keep = read(decision), True
            pytest.fail("%s\nThe run is kept: memdiag diff %s" % (failure(told) if told else output, shlex.quote(run)), pytrace=False)
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def failure(told):
    """The gate's sentence, and what is known of each leak, or else of each growth in doubt. The plugin comes with the memdiag that wrote
    the decision, and knows its keys."""
    lines = ["memdiag gate: " + told["sentence"]]
    findings = [leak for leak in told["leaks"] if leak["state"] in ("new", "regressed")] or told["undecided"]
    for finding in findings[:SHOWN]:
        lines.append(finding["place"])
        sure = "Cause" if finding in told["leaks"] else "If it leaks"
        for label, key in (("Held by", "held_by"), (sure, "cause_name"), ("Fix", "fix")):
            if finding.get(key) and not (key == "fix" and sure != "Cause"):
                lines.append("    %s: %s" % (label, finding[key]))
    if len(findings) > SHOWN:
        lines.append("and %d more" % (len(findings) - SHOWN))
    for growth in told["unexplained"]:
        holder = growth.get("holder")
        if holder:
            lines.append("the process itself grows; likely held by %s %s" % (holder["kind"], holder["path"]))
        if growth.get("fix"):
            lines.append("    Fix: " + growth["fix"])
    return "\n".join(lines)


def read(path):
    """The JSON in a file; None if there is no such file."""
    try:
        with open(path, encoding="utf-8") as f:
            return json.load(f)
    except FileNotFoundError:
        return None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call():
    """In the recorded process: traces Python's heap during the test if PyTorch is not imported, because then steps leak there."""
    agent = memdiag._running
    if os.environ.get(CHILD) and agent is not None and "torch" not in sys.modules and not agent.heap.tracing:
        agent.heap.trace()


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport():
    """In the recorded process: a test that must fail and passes ends the process as a test that passes, so that the gate judges it. pytest
    fails it in the process that has this one run."""
    report = (yield).get_result()
    if os.environ.get(CHILD) and str(report.longrepr).startswith("[XPASS(strict)]"):
        report.outcome, report.longrepr = "passed", None


def pytest_runtest_logreport(report):
    """In the recorded process: writes how the test went. A failure in any part counts."""
    path = os.environ.get(CHILD)
    if not path or report.when != "call" and report.outcome == "passed":
        return
    outcome, text = report.outcome, report.longreprtext
    if outcome == "skipped" and hasattr(report, "wasxfail"):
        outcome, text = "xfailed", report.wasxfail
    elif outcome == "skipped" and isinstance(report.longrepr, tuple):
        text = report.longrepr[2]
    before = read(path)
    if before is None or before["outcome"] == "passed":
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"outcome": outcome, "text": text, "steps": memdiag._running.step if memdiag._running else 0}, f)
