"""How much more memory this process may take: what the machine has available, and what each of its control groups has.

Cached files that nobody has read recently count as available, since the kernel drops them at once. Swap does not count: a training that
swaps is as good as dead.
"""

from ._real import open, os


def room(proc="/proc", groups="/sys/fs/cgroup"):
    """Bytes; None if the system does not report them."""
    left = [*of_machine(proc), *of_groups(proc, groups)]
    return max(0, min(left)) if left else None


def of_machine(proc):
    for kib in entries(proc + "/meminfo", "MemAvailable:"):
        yield kib << 10


def of_groups(proc, groups):
    for line in lines(proc + "/self/cgroup"):
        number, controllers, path = (line.split(":", 2) + ["", ""])[:3]
        if number == "0":
            top, limit, used, cached = groups, "memory.max", "memory.current", "inactive_file"
        elif "memory" in controllers.split(","):
            top, limit, used, cached = groups + "/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
        else:
            continue
        # A container may see the whole path, but only its own group, as the top folder.
        path = path.strip("/")
        while True:
            here = os.path.join(top, path) + "/"
            for most in numbers(lines(here + limit)):  # else it is "max", or missing
                for now in numbers(lines(here + used)):
                    yield most - now + sum(entries(here + "memory.stat", cached))
            if not path:
                break
            path = os.path.dirname(path)


def entries(path, key):
    """The number in each line of a file that begins with a key."""
    for line in lines(path):
        fields = line.split()
        if fields[:1] == [key]:
            yield from numbers(fields[1:2])


def numbers(texts):
    """Those texts that are numbers of at most 64 bits."""
    return [int(t) for t in texts if t.isdecimal() and len(t) < 20]


def lines(path):
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as f:
            return f.read().splitlines()
    except (OSError, ValueError):  # the name has bytes that the system's encoding does not have
        return []
