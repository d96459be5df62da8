"""The truth of each series of PyTorch snapshots, which was written before memdiag was run on it."""

ALL = {}


def series(leak, *lines, rate=None, ok=None, findings=None):
    """Registers a series. leak is True, False, or None if nobody could tell; lines are those that leak, as file:line; rate is
    in bytes a step; ok are the exit codes of memdiag gate that are right; findings is how many there should be."""

    def f(fn):
        ALL[fn.__name__] = (
            fn,
            dict(
                leak=leak,
                lines=lines,
                rate=rate,
                ok=ok or ([1] if leak else [0] if leak is False else [4]),
                findings=findings or (max(1, len(lines)) if leak else 0),
                doc=fn.__doc__,
            ),
        )
        return fn

    return f
