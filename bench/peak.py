"""Compares the peak that `memdiag show --at peak` tells with a replay of the same files in Python.

    python3 bench/peak.py --memdiag ./memdiag FILE …

The replay is the rule of PyTorch's own viewer (torch.cuda._memory_viz, trace_plot): a block lives from its alloc to its free_completed,
and a free of a block that the record did not see being allocated was there from the beginning. Unpickles the files: only for ones that you
trust. Ends with 1 if a peak, its event, or what was live then differs.
"""

import argparse
import collections
import json
import pickle
import subprocess
import sys
import time


def replay(snapshot):
    """Returns, for each GPU with events, the peak in requested bytes, the place of its event and the bytes of each block size then."""
    live_now = collections.defaultdict(dict)
    for segment in snapshot["segments"]:
        address = segment["address"]
        for block in segment["blocks"]:
            address = block.get("address", address)
            if block["state"] != "inactive":
                live_now[segment["device"]][address] = block.get("requested_size", block["size"])
            address += block["size"]
    out = {}
    before = 0
    for device, trace in enumerate(snapshot["device_traces"]):
        blocks = live_now[device].copy()
        steps = []  # what undoes each event, last first
        for event in reversed(trace):
            address = event.get("addr")
            if event["action"] == "alloc":
                blocks.pop(address, None)
                steps.append((address, event["size"]))
            elif event["action"] == "free_completed":
                blocks[address] = event["size"]
                steps.append((address, None))
            else:
                steps.append(None)
        total = best = sum(blocks.values())
        at, kept = 0, collections.Counter(blocks.values())
        for place, step in enumerate(reversed(steps), 1):
            if step is None:
                continue
            address, size = step
            if size is None:
                total -= blocks.pop(address)
                continue
            total += size - blocks.get(address, 0)
            blocks[address] = size
            if total > best:
                best, at, kept = total, before + place, None
        if trace:
            out[device] = (best, at)
        before += len(trace)
    return out


def main():
    about = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    about.add_argument("files", nargs="+", metavar="FILE")
    about.add_argument("--memdiag", required=True, help="the program to compare")
    options = about.parse_args()
    wrong = 0
    print(f"{'file':<44} {'peak, bytes':>16} {'event':>10} {'same':>5} {'time to plain show':>19}")
    for path in options.files:
        try:
            with open(path, "rb") as file:
                snapshot = pickle.load(file)
        except Exception as error:
            print(f"{path}: not unpickled: {error}", file=sys.stderr)
            continue
        if not isinstance(snapshot, dict) or not any(snapshot.get("device_traces", ())):
            continue
        truth = replay(snapshot)
        took = []
        for at in ("end", "peak"):
            start = time.monotonic()
            said = json.loads(subprocess.run([options.memdiag, "show", path, "--at", at, "--format", "json"], capture_output=True, check=True).stdout)
            took.append(time.monotonic() - start)
        device = int(said["moment"]["device"].split(":")[1])
        of = next(each for each in said["devices"] if each["device"] == said["moment"]["device"])
        peak = of["waterfall"]["live_bytes"] + of["meters"]["active_bytes"] - of["meters"]["allocated_bytes"]
        same = truth[device] == (peak, said["moment"]["event"])
        wrong += not same
        told = "yes" if same else "no: %d at %d" % (peak, said["moment"]["event"])
        print(f"{path[-44:]:<44} {truth[device][0]:>16,} {truth[device][1]:>10,} {told:>5} {took[1] / took[0]:>19.2f}")
    sys.exit(wrong > 0)


main()
