"""Runs a program as __main__, and samples from a thread what lives in its process.

    sampler.py SAMPLES.json PROGRAM [ARGUMENT...]

The program is not changed. A sample is the second it was taken at and the measures that could be had then: check.py
names them. The thread takes at most about 6 % of the time.
"""

import ctypes
import gc
import json
import os
import runpy
import sys
import threading
import time

CONTAINERS = ("list", "tuple", "dict", "set", "deque", "cell", "OrderedDict", "defaultdict")
MOST_NODES = 20_000


class Mallinfo(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
    ]


def heap_in_use():
    """Returns the bytes that malloc has handed out and not got back, or None without glibc 2.33."""
    try:
        mallinfo2 = ctypes.CDLL(None).mallinfo2
    except AttributeError:
        return None
    mallinfo2.restype = Mallinfo
    info = mallinfo2()
    return info.uordblks + info.hblkhd


def process_tree(pid):
    """Yields pid and its descendants."""
    yield pid
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as file:
                for child in file.read().split():
                    yield from process_tree(int(child))
    except OSError:
        pass


def private_dirty(pid):
    """Returns the bytes that only this process has written to; 0 for one that has ended."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            for line in file:
                if line.startswith("Private_Dirty:"):
                    return int(line.split()[1]) << 10
    except (OSError, ProcessLookupError):
        pass
    return 0


def of_types(objects, base):
    """Returns the objects whose type is a subclass of base, without asking the objects themselves."""
    wanted = {kind for kind in set(map(type, objects)) if issubclass(kind, base)}
    return [each for each in objects if type(each) in wanted] if wanted else []


def tensor_measures(torch, objects):
    storages = {}
    functions = []
    tensors = 0
    for tensor in of_types(objects, torch.Tensor):
        tensors += 1
        try:
            storage = tensor.untyped_storage()
            storages[storage.data_ptr()] = storage.nbytes()
            if tensor.grad_fn is not None:
                functions.append(tensor.grad_fn)
        except Exception:  # a fake tensor has no storage
            continue
    seen = set()
    while functions and len(seen) < MOST_NODES:
        function = functions.pop()
        if function in seen:
            continue
        seen.add(function)
        functions.extend(following for following, _ in function.next_functions if following is not None)
    return {"tensors": tensors, "tensor bytes": sum(storages.values()), "graph nodes": len(seen)}


def array_measures(numpy, objects):
    """Counts NumPy's arrays, which the collector does not track, in containers and the fields of objects."""
    holders = [each for each in objects if type(each).__name__ in CONTAINERS or hasattr(type(each), "__dict__")]
    arrays = {}
    for array in of_types(gc.get_referents(*holders), numpy.ndarray):
        while type(array.base) is numpy.ndarray:
            array = array.base
        arrays[id(array)] = array.nbytes
    return {"arrays": len(arrays), "array bytes": sum(arrays.values())}


def deep_measures():
    """Returns what a walk over all objects shows."""
    objects = gc.get_objects()
    found = {"objects": len(objects)}
    torch = sys.modules.get("torch")
    numpy = sys.modules.get("numpy")
    jax = sys.modules.get("jax")
    if hasattr(torch, "Tensor"):
        found.update(tensor_measures(torch, objects))
    if hasattr(jax, "live_arrays"):
        arrays = jax.live_arrays()
        found.update({"arrays": len(arrays), "array bytes": sum(array.nbytes for array in arrays)})
    elif hasattr(numpy, "ndarray"):
        found.update(array_measures(numpy, objects))
    return found


def undisturbed_deep_measures():
    """Returns deep_measures() with no other thread between: one that builds a tuple would find that somebody holds it."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(3600)
    try:
        return deep_measures()
    finally:
        sys.setswitchinterval(interval)


def light_measures():
    found = {"blocks": sys.getallocatedblocks(), "modules": len(sys.modules)}
    heap = heap_in_use()
    if heap is not None:
        found["heap"] = heap
    return found


def process_measures():
    own, *children = process_tree(os.getpid())
    return {"private": private_dirty(own), "children": sum(map(private_dirty, children))}


class Sampler(threading.Thread):
    """Takes light samples every tenth of a second, and others as rarely as they are dear in processor time."""

    def __init__(self):
        super().__init__(daemon=True)
        self.start_time = time.monotonic()
        self.samples = []
        self.ended = threading.Event()

    def run(self):
        rarer = {process_measures: 0.0, undisturbed_deep_measures: 1.0}
        pause = 0.1
        while not self.ended.wait(pause):
            now = time.monotonic() - self.start_time
            began = time.thread_time()
            measures = light_measures()
            pause = max(0.1, 30 * (time.thread_time() - began))
            for measure, due in rarer.items():
                if now < due:
                    continue
                began = time.thread_time()
                try:
                    measures.update(measure())
                except Exception as error:  # a module that is only half imported
                    measures["failed"] = repr(error)
                rarer[measure] = now + max(0.2, 40 * (time.thread_time() - began))
            self.samples.append((now, measures))


def main():
    target, program, *arguments = sys.argv[1:]
    sys.argv = [program, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(program))
    sampler = Sampler()
    sampler.start()
    try:
        runpy.run_path(program, run_name="__main__")
    finally:
        sampler.ended.set()
        sampler.join()
        with open(target, "w", encoding="utf-8") as file:
            json.dump(sampler.samples, file)


if __name__ == "__main__":
    main()
