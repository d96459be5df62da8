"""A jitted step meets a new batch length each time and is compiled for each; --fixed pads to one length."""
# kind: jax
# needs: jax
# holder: -
# cause: compiled-anew host-only
# rate: ~1600000 B/length
# met in: jax-ml/jax#2072
import sys

import jax
import jax.numpy as jnp
import numpy as np

FIXED = "--fixed" in sys.argv
LONGEST = 512


@jax.jit
def train_step(w, x, mask):
    def loss_of(w):
        error = (jnp.tanh(x @ w) - x).mean(1) ** 2
        return (error * mask).sum() / mask.sum()

    loss, grad = jax.value_and_grad(loss_of)(w)
    return w - 0.1 * grad, loss


rng = np.random.default_rng(0)
w = jnp.eye(16)
for length in range(16, 66):
    for repeat in range(40):
        x = rng.normal(size=(length, 16)).astype(np.float32)
        mask = np.ones(length, np.float32)
        if FIXED:
            x = np.pad(x, ((0, LONGEST - length), (0, 0)))
            mask = np.pad(mask, (0, LONGEST - length))
        w, loss = train_step(w, x, mask)  # leak
print(f"loss {float(loss):.4f}")
