"""The clock by which the agent's own work is measured."""

import time

work = time.thread_time  # of the agent itself: on a busy machine the clock runs on without it
