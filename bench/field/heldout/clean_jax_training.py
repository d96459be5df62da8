"""A jitted step donates its parameters; metrics are fetched every fifty steps and averaged."""
# kind: jax
# needs: jax
# expect: clean
import functools

import jax
import jax.numpy as jnp


@functools.partial(jax.jit, donate_argnums=0)
def train_step(params, x):
    def loss_of(params):
        hidden = jnp.tanh(x @ params["w1"])
        return jnp.mean((hidden @ params["w2"] - x) ** 2)

    loss, grads = jax.value_and_grad(loss_of)(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), loss


key = jax.random.PRNGKey(0)
params = {"w1": 0.1 * jax.random.normal(key, (64, 256)), "w2": 0.1 * jax.random.normal(key, (256, 64))}
waiting = []
means = []
for step in range(8000):
    key, subkey = jax.random.split(key)
    params, loss = train_step(params, jax.random.normal(subkey, (64, 64)))
    waiting.append(loss)
    if len(waiting) == 50:
        means.append(float(jnp.stack(waiting).mean()))
        waiting = []
print(f"loss {means[-1]:.6f}")
