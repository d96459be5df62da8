"""Starts memdiag's agent in a process that runs already: `memdiag attach` has Python run this file between two of the program's
instructions. What goes wrong stands in the file "failed" beside it, and does not reach the program."""


def _attach(here):
    import sys
    from importlib.util import module_from_spec, spec_from_file_location

    # Under a name of its own: the program may have the package itself, of another version.
    name, folder = "_memdiag", here + "/memdiag"
    if name in sys.modules or getattr(sys.modules.get("memdiag"), "_running", None) is not None:
        raise RuntimeError("it is recorded already, by another memdiag")
    if getattr(getattr(sys.modules.get("torch"), "__spec__", None), "_initializing", False):
        raise RuntimeError("it is importing PyTorch just now; try again in some seconds")
    spec = spec_from_file_location(name, folder + "/__init__.py", submodule_search_locations=[folder])
    sys.modules[name] = package = module_from_spec(spec)
    try:
        spec.loader.exec_module(package)
        package._attach(here)
    except BaseException:
        for module in [m for m in sys.modules if m == name or m.startswith(name + ".")]:
            del sys.modules[module]
        raise


def _try(here):
    try:
        _attach(here)
    except BaseException as e:  # else it would be the program's
        with open(here + "/failed", "w", encoding="utf-8") as f:
            f.write("%s: %s" % (type(e).__name__, e) if type(e) is not RuntimeError else str(e))


_try(__file__.rpartition("/")[0])
