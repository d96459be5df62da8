"""np.eye assigns to a flat iterator, which NumPy 2.4.0 does not free."""
# kind: numpy
# leaky: numpy==2.4.0
# mended: numpy==2.4.1
# met in: numpy/numpy#30508
# holder: -
# cause: host-only
# rate: ~2632 B/step
import numpy as np

state = np.zeros((10, 10), dtype=np.complex128)
for step in range(60_000):
    identity = np.eye(10, dtype=np.complex128)  # leak
    state = 0.99 * state + 0.01 * identity
    state /= np.abs(state).max()
    for _ in range(24):
        state = np.sort_complex(state.ravel()).reshape(10, 10)
print(f"state {abs(state.sum()):.6f}")
