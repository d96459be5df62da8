"""A binding to a C library gets a buffer for each frame and frees it only if the frame is valid; --fixed frees it always."""
# kind: vision
# holder: -
# cause: host-only release-forgotten
# rate: 40000 B/frame
import ctypes
import sys

import numpy as np

FIXED = "--fixed" in sys.argv
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
rng = np.random.default_rng(0)


def decode(frame):
    address = libc.malloc(frame.nbytes)  # leak
    ctypes.memmove(address, frame.ctypes.data, frame.nbytes)
    view = np.ctypeslib.as_array((ctypes.c_float * frame.size).from_address(address))
    value = float(np.sort(view)[frame.size // 2])
    if FIXED or value > 0:
        libc.free(address)
    return value


total = 0.0
for number in range(20000):
    total += decode(rng.normal(loc=0.05 * (-1) ** number, size=10_000).astype(np.float32))
print(f"total {total:.4f}")
