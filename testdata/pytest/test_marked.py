"""Tests of every fate, named by it, which memdiag's plugin for pytest is tried on."""

import os
import signal

import pytest
from memdiag import mark

kept = []


def train(steps=100, keep=True):
    for step in range(1, steps + 1):
        batch = bytes(3000)
        if keep:
            kept.append(batch)
        mark(step=step)


@pytest.fixture(params=["one", "two"])
def word(request):
    return request.param


@pytest.mark.memdiag
def test_passes_clean(word):
    train(keep=False)


@pytest.mark.memdiag
def test_fails_leak():
    train()


@pytest.mark.memdiag(max_growth="4KiB/step")
def test_passes_within():
    train()


@pytest.mark.memdiag
def test_fails_short():
    train(steps=15)


@pytest.mark.memdiag(inconclusive="pass")
def test_passes_short():
    train(steps=15)


@pytest.mark.memdiag
def test_fails_without_steps():
    pass


@pytest.mark.memdiag
def test_fails_itself():
    train(keep=False)
    assert len(kept) == 1


@pytest.mark.memdiag
def test_fails_killed():
    train(keep=False)
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.memdiag
@pytest.mark.xfail(strict=True)
def test_fails_unless_it_fails():
    train(keep=False)


@pytest.mark.memdiag
@pytest.mark.xfail(raises=ValueError)
def test_skips_what_fails_as_expected():
    raise ValueError


@pytest.mark.memdiag
def test_skips_itself():
    pytest.skip("not today")


@pytest.mark.memdiag
@pytest.mark.xfail(strict=True)
def test_skips_expected_leak():
    train()


def test_passes_unmarked():
    train()
