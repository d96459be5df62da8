"""Leaves the dispatch mode while the program makes a tensor of a class of its own.

PyTorch makes a plain tensor first. Below a mode this has a Python object, and PyTorch refuses to give it a second one.
"""

import functools

from ._compiled import skip
from ._length import members

# The first version in which Tensor.as_subclass works below a mode.
FIXED = 2, 7


def watch(source, torch, version):
    """Wraps Tensor.__new__, which the constructors of derived classes call. torch.compile compares theirs with Tensor's."""
    tensor = torch.Tensor
    if "__new__" in members(tensor):
        return
    tensor.__new__ = staticmethod(without(source, torch, tensor.__new__))
    source.agent.undo.append(lambda: delattr(tensor, "__new__"))
    if version < FIXED:
        source.agent.replace(tensor, "as_subclass", without(source, torch, tensor.as_subclass))


def without(source, torch, original):
    """A function that calls the original one without the mode."""
    def wrapper(*args, **kwargs):
        mode = None if args and args[0] is torch.Tensor else source.top()
        if mode is None:
            return original(*args, **kwargs)
        mode.__exit__()
        try:
            return original(*args, **kwargs)
        finally:
            mode.__enter__()

    wrapper._torchdynamo_disable = True  # torch.compile knows the original one
    skip(torch, wrapper)
    return functools.update_wrapper(wrapper, original)
