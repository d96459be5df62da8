"""The batches that a loader's worker makes, which are its steps."""

import sys

# What stands between the worker's loop and its dataset. It bears no file of ours, since what a stack has one of is the agent's.
COUNTED = """
def counted(fetch, batches):
    def fetch_counted(self, index):
        made = fetch(self, index)
        batches[0] += 1
        return made
    return fetch_counted
"""


def count():
    """Has the batches be counted that this process makes from now on, in a list of one; None where it is no loader's worker."""
    loaders, batches = sys.modules.get("torch.utils.data._utils"), [0]
    if getattr(getattr(loaders, "worker", None), "_worker_info", None) is None:
        return None
    made = {}
    exec(compile(COUNTED, "<batch>", "exec"), made)
    for name in ("_MapDatasetFetcher", "_IterableDatasetFetcher"):
        fetcher = getattr(loaders.fetch, name)
        fetcher.fetch = made["counted"](fetcher.fetch, batches)
    return batches
