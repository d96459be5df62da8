"""Time CPython's unpickler on one file, for torch_reader.sh: FILE plain|restricted on|off READINGS.

Prints the processor seconds of the best reading and the peak resident memory in KiB.
"""
import gc, pickle, sys, time


class Restricted(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"{module}.{name}")


def peak():
    """VmHWM, since getrusage counts what the parent had when it forked."""
    with open("/proc/self/status") as status:
        return next(line.split()[1] for line in status if line.startswith("VmHWM"))


def main():
    path, how, collector, readings = sys.argv[1:]
    if collector == "off":
        gc.disable()
    best = float("inf")
    for _ in range(int(readings)):
        with open(path, "rb") as f:
            start = time.process_time()
            tree = pickle.load(f) if how == "plain" else Restricted(f).load()
            best = min(best, time.process_time() - start)
        del tree
    print("%.6f %s" % (best, peak()))


main()
