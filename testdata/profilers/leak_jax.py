"""Writes device memory profiles of a training loop that keeps activations.

    pip install jax==0.10.2
    python leak_jax.py
"""

import jax
import jax.numpy as jnp
import jax.profiler

kept = []


@jax.jit
def forward(x, w):
    return jnp.tanh(x @ w)


def train(steps, w):
    for _ in range(steps):
        activations = forward(jnp.ones((64, 256), jnp.float32), w)
        kept.append(activations)  # the leak


weights = jnp.ones((256, 256), jnp.float32)
for call in range(1, 5):
    train(10, weights)
    if call > 1:  # the first call compiles
        jax.profiler.save_device_memory_profile(f"jax_{10 * call}.pb.gz")
