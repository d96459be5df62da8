"""How much more memory this process may take: what the machine has left, and each control group that it is in.

What the kernel would drop at once, cached files that nobody has read of late, is left. Swap is not counted: a training
that swaps is as good as dead.
"""

import os


def room(proc="/proc", groups="/sys/fs/cgroup"):
    """Bytes; None where the system does not tell."""
    return min([*of_machine(proc), *of_groups(proc, groups)], default=None)


def of_machine(proc):
    for line in lines(proc + "/meminfo"):
        if line.startswith("MemAvailable:"):
            yield int(line.split()[1]) << 10


def of_groups(proc, groups):
    for line in lines(proc + "/self/cgroup"):
        number, controllers, path = line.split(":", 2)
        if number == "0":
            top, limit, used, cached = groups, "memory.max", "memory.current", "inactive_file"
        elif "memory" in controllers.split(","):
            top, limit, used, cached = groups + "/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
        else:
            continue
        # A container may see the whole path and of the groups only its own, as the top.
        path = path.strip("/")
        while True:
            here = os.path.join(top, path) + "/"
            most = first(here + limit)
            if most.isdigit():  # else it is "max", or not there
                free = sum(int(s.split()[1]) for s in lines(here + "memory.stat") if s.startswith(cached + " "))
                yield int(most) - int(first(here + used)) + free
            if not path:
                break
            path = os.path.dirname(path)


def first(path):
    return next(iter(lines(path)), "")


def lines(path):
    try:
        with open(path) as f:
            return f.read().splitlines()
    except OSError:
        return []
