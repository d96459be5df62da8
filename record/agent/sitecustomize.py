"""Starts memdiag's agent in a Python process that `memdiag record` launched.

Python imports this module at its start, because its folder is first on PYTHONPATH.
It then makes room for the sitecustomize that would have been imported without it.
Whatever goes wrong here must not reach the program. An interrupt (Ctrl-C) that comes
meanwhile does, when the program begins: Python itself cannot go on without this module.
"""


def _start():
    import os
    import sys

    later = []
    before = _hold(later)
    here = os.path.dirname(os.path.abspath(__file__))
    try:
        _uncounted()
        if sys.version_info >= (3, 10):  # an older one has not all that the agent is written in
            package = _load_ours(here)
            package._start()
    except Exception:
        pass  # memdiag sees that no agent reported, and says so
    sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != here]
    ours = sys.modules.pop("sitecustomize", None)
    try:
        _release(before, later)
        import sitecustomize  # noqa: F401  the user's own, or the system's
    except KeyboardInterrupt:
        later.append(True)
    except ImportError as e:
        if getattr(e, "name", "sitecustomize") != "sitecustomize":
            raise
    finally:
        sys.modules.setdefault("sitecustomize", ours)
    if later:
        _interrupt()


def _uncounted():
    """Takes this file out of what coverage.py counts, where that began before: a report would look for the file when it is gone."""
    import sys

    try:
        counts = sys.modules["coverage"].Coverage.current()._collector
        counts.should_trace_cache[__file__].trace = False
        counts.data.pop(__file__, None)
    except (AttributeError, KeyError):
        pass  # it is not there, or another version


def _load_ours(here):
    """Returns the agent's package. Python writes its bytecode, for this process's children and the next run, even if it may write none of
    the program's."""
    import os
    import sys
    from _frozen_importlib_external import FileFinder, SourceFileLoader, cache_from_source

    class Loader(SourceFileLoader):
        def exec_module(self, module):
            # Coverage tools count no file with such a name; they would look for the agent's when it is gone.
            module.__file__ = "<memdiag>/" + os.path.basename(self.path)
            super().exec_module(module)

        def get_code(self, name):
            told = sys.dont_write_bytecode, sys.pycache_prefix
            sys.dont_write_bytecode, sys.pycache_prefix = False, None
            try:
                try:
                    return super().get_code(name)
                except (EOFError, ValueError, TypeError, ImportError):  # the disk was full when its bytecode was written
                    os.unlink(cache_from_source(self.get_filename(name)))
                    return super().get_code(name)
            finally:
                sys.dont_write_bytecode, sys.pycache_prefix = told

    for folder in (here, here + "/memdiag"):
        sys.path_importer_cache[folder] = FileFinder(folder, (Loader, [".py"]))
    if not _theirs(here):
        import memdiag

        return memdiag
    from _frozen_importlib import module_from_spec
    from _frozen_importlib_external import spec_from_file_location

    file = here + "/memdiag/__init__.py"
    spec = spec_from_file_location("_memdiag", loader=Loader("_memdiag", file), submodule_search_locations=[here + "/memdiag"])
    sys.modules["_memdiag"] = package = module_from_spec(spec)
    spec.loader.exec_module(package)
    return package


def _theirs(here):
    """Whether memdiag is the name of a module of the program's own, which its imports must find."""
    import os
    import sys

    run = os.environ.get("MEMDIAG_AGENT_DIR", "")
    if os.environ.get("MEMDIAG_AGENT_ASIDE") == run:  # the parent found one; what spawn starts gets the folder later
        return True
    script = (getattr(sys, "argv", None) or [""])[0]
    folders = [] if getattr(sys.flags, "safe_path", False) or sys.flags.isolated else [""]
    if folders and script not in ("", "-c", "-m"):
        folders = [script, os.path.dirname(os.path.realpath(script))]
    for folder in folders + [p for p in sys.path if os.path.abspath(p or ".") != here]:
        package = os.path.join(folder, "memdiag")
        if os.path.isfile(package + "/__init__.py"):
            if os.path.isfile(package + "/_agent.py"):
                return False  # memdiag's own, that was installed
        elif not os.path.isfile(package + ".py"):
            continue
        os.environ["MEMDIAG_AGENT_ASIDE"] = run
        return True
    return False


def _hold(later):
    """Keeps interrupts in a list for now, and returns their handler; None where nothing is changed."""
    try:
        import _signal as signal

        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            return signal.signal(signal.SIGINT, lambda *_: later.append(True))
    except (ImportError, ValueError):
        pass  # another interpreter than the main one, to which none come
    return None


def _release(before, later):
    if before is not None:
        import _signal as signal

        signal.signal(signal.SIGINT, before)


def _interrupt():
    """Interrupts the program once it has begun, from a thread: here nobody could handle it."""
    import _signal
    import _thread
    import sys
    import time

    main = _thread.get_ident()

    def begun():
        frame = sys._current_frames().get(main)
        while frame is not None and frame.f_globals.get("__name__") != "__main__":
            frame = frame.f_back
        return frame is not None

    def wait():
        for _ in range(10000):  # some seconds: what embeds Python may have no main module
            time.sleep(0.0005)
            if begun():
                break
        if hasattr(_signal, "pthread_kill"):
            _signal.pthread_kill(main, _signal.SIGINT)  # which ends a sleep, too
        else:
            _thread.interrupt_main()

    _thread.start_new_thread(wait, ())


_start()
del _start, _uncounted, _load_ours, _theirs, _hold, _release, _interrupt
