"""Errors that a signal handler of the program raised while it interrupted us. The program waits for them."""

import signal
import types
from functools import partial

from ._length import members, mro


def raised(e):
    """Whether an error came from a signal handler of the program."""
    codes = {id(code_of(signal.getsignal(s))) for s in signal.valid_signals()} - {id(None)}
    at = e.__traceback__
    while at is not None and id(at.tb_frame.f_code) not in codes:
        at = at.tb_next
    return at is not None


def code_of(handler):
    """The code of a handler; None if it is not a Python function."""
    while type(handler) is partial:
        handler = handler.func
    if not isinstance(handler, (types.FunctionType, types.MethodType)):
        handler = next((members(c)["__call__"] for c in mro(type(handler)) if "__call__" in members(c)), None)
    if type(handler) is types.MethodType:
        handler = handler.__func__
    return handler.__code__ if type(handler) is types.FunctionType else None
