"""A function is jitted for each user, with the user's table in its closure, and kept by name; --fixed passes the table."""
# kind: jax
# needs: jax
# holder: functions
# cause: cache-without-bound compiled-anew container-grows
# rate: ~1500000 B/user
# met in: jax-ml/jax#11448
import sys

import jax
import jax.numpy as jnp

FIXED = "--fixed" in sys.argv
functions = {}


def score(table, x):
    return jnp.tanh(x @ table).sum()


shared = jax.jit(score)


def score_for(user, table, x):
    if FIXED:
        return shared(table, x)
    if user not in functions:
        functions[user] = jax.jit(lambda x: score(table, x))  # leak
    return functions[user](x)  # leak


key = jax.random.PRNGKey(0)
total = 0.0
for user in range(80):
    key, subkey = jax.random.split(key)
    table = jax.random.normal(subkey, (128, 128))  # leak
    for request in range(60):
        total += float(score_for(f"user{user}", table, jnp.ones((4, 128)) * (request % 3)))
print(f"total {total:.2f}")
