"""Fits a linear model in JAX and remembers the gradients of every step, to plot their norm at the end."""

import time

import jax
import jax.numpy as jnp


@jax.jit
def update(weights, x, y):
    gradients = jax.grad(lambda w: jnp.mean((x @ w - y) ** 2))(weights)
    return weights - 0.05 * gradients, gradients


def main():
    x = jax.random.normal(jax.random.PRNGKey(0), (64, 512))
    y, weights, history = x[:, 0], jnp.zeros(512), []
    for _ in range(400):
        weights, gradients = update(weights, x, y)  # leak: kept below
        history.append(gradients)
        time.sleep(0.01)  # the data would come from somewhere
    print(f"{float(weights[0]):.3f}, {len(history)} gradients")


main()
