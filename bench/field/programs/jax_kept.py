"""Predictions of each step are kept in a list; --fixed keeps their loss."""
# kind: jax
# needs: jax
# holder: kept
# cause: container-grows outputs-kept
# rate: 8192 B/step
import sys

import jax
import jax.numpy as jnp

FIXED = "--fixed" in sys.argv


@jax.jit
def train_step(w, x):
    def loss_of(w):
        return jnp.mean((x @ w - x) ** 2)

    loss, grad = jax.value_and_grad(loss_of)(w)
    return w - 0.01 * grad, x @ w, loss


key = jax.random.PRNGKey(0)
w = 0.5 * jnp.eye(64)
kept = []
for step in range(12000):
    key, subkey = jax.random.split(key)
    x = jax.random.normal(subkey, (32, 64))
    w, prediction, loss = train_step(w, x)  # leak
    kept.append(float(loss) if FIXED else prediction)  # leak
print(f"loss {float(loss):.6f}")
