"""Counts the batches of a DataLoader's worker. They are its steps."""

import sys

# The function between the worker's loop and its dataset. Its code names no file of ours, since a stack with such a file counts as the
# agent's.
COUNTED = """
def counted(fetch, batches):
    def fetch_counted(self, index):
        made = fetch(self, index)
        batches[0] += 1
        return made
    return fetch_counted
"""


def count():
    """Counts the batches that this process makes from now on. Returns the count in a list of one; None if this is no DataLoader's worker."""
    loaders, batches = sys.modules.get("torch.utils.data._utils"), [0]
    if getattr(getattr(loaders, "worker", None), "_worker_info", None) is None:
        return None
    made = {}
    exec(compile(COUNTED, "<batch>", "exec"), made)
    for name in ("_MapDatasetFetcher", "_IterableDatasetFetcher"):
        fetcher = getattr(loaders.fetch, name)
        fetcher.fetch = made["counted"](fetcher.fetch, batches)
    return batches
