"""Leaves the dispatch mode while the program makes a tensor of a class of its own.

PyTorch makes a plain tensor first. Below a mode this has a Python object, and PyTorch refuses to give it a second one.
"""

import functools

from ._length import members

# The first version in which Tensor.as_subclass works below a mode.
FIXED = 2, 7


def watch(source, torch, version):
    """Wraps __new__ of the classes that the program derives from Tensor."""
    tensor = torch.Tensor
    if "__init_subclass__" in members(tensor):
        return

    def __init_subclass__(cls, **kwargs):
        super(tensor, cls).__init_subclass__(**kwargs)
        if not str(cls.__module__).startswith("torch.") and ("__new__" in members(cls) or cls.__new__ is tensor.__new__):
            cls.__new__ = staticmethod(without(source, cls.__new__))

    tensor.__init_subclass__ = classmethod(__init_subclass__)
    source.agent.undo.append(lambda: delattr(tensor, "__init_subclass__"))
    if version < FIXED:
        source.agent.replace(tensor, "as_subclass", without(source, tensor.as_subclass))


def without(source, original):
    """A function that calls the original one without the mode."""
    def wrapper(*args, **kwargs):
        mode = source.top()
        if mode is None:
            return original(*args, **kwargs)
        mode.__exit__()
        try:
            return original(*args, **kwargs)
        finally:
            mode.__enter__()

    return functools.update_wrapper(wrapper, original)
