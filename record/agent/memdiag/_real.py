"""Functions of Python as they were when the agent began.

A test puts mocks in their place, as with mock.patch("time.sleep"), and counts their calls. It must count none of the agent's, and the agent's
clock must go on. Tools that replace such functions in all modules, as freezegun does, find none in an object.
"""

import builtins
import json as _json
import os as _os
import sys
import time as _time


def copy(module):
    return type(sys.implementation)(**vars(module))


json, os, time = copy(_json), copy(_os), copy(_time)
os.path = copy(_os.path)
open = builtins.open
