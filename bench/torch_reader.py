"""Time CPython's unpickler on one file, for torch_reader.sh: FILE plain|restricted on|off READINGS.

Prints the processor seconds of the best reading, the peak resident memory in KiB, and what of it was there before.
"""
import gc, io, pickle, resource, sys, time


class Restricted(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"{module}.{name}")


def main():
    path, how, collector, readings = sys.argv[1:]
    if collector == "off":
        gc.disable()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    best = float("inf")
    for _ in range(int(readings)):
        with open(path, "rb") as f:
            start = time.process_time()
            tree = pickle.load(f) if how == "plain" else Restricted(f).load()
            best = min(best, time.process_time() - start)
        del tree
    print("%.6f %d %d" % (best, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, before))


main()
