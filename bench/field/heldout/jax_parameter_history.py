"""The parameters after each epoch are kept in a list, to choose the best; --fixed keeps the best only."""
# kind: jax
# needs: jax
# holder: history
# cause: model-copies-kept container-grows
# rate: 66048 B/epoch
import sys

import jax
import jax.numpy as jnp

FIXED = "--fixed" in sys.argv


def loss_of(params, x):
    hidden = jnp.tanh(x @ params["w1"] + params["b1"])
    return jnp.mean((hidden @ params["w2"] - x) ** 2)


@jax.jit
def train_step(params, x):
    loss, grads = jax.value_and_grad(loss_of)(params, x)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), loss


key = jax.random.PRNGKey(0)
params = {
    "w1": 0.1 * jax.random.normal(key, (64, 128)),
    "b1": jnp.zeros(128),
    "w2": 0.1 * jax.random.normal(key, (128, 64)),
}
history = []
for epoch in range(800):
    for step in range(20):
        key, subkey = jax.random.split(key)
        params, loss = train_step(params, jax.random.normal(subkey, (64, 64)))  # leak
    if FIXED:
        if not history or float(loss) < history[0][0]:
            history = [(float(loss), params)]
    else:
        history.append((float(loss), params))  # leak
print(f"best {min(score for score, _ in history):.6f}")
