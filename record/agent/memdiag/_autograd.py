"""Whether autograd is at rest. The backward pass frees what it has used without Python's lock, and replaces gradients. A thread that reads
its graph meanwhile would crash."""

from _thread import get_ident

from ._frames import back, current

# A thread whose first function is in one of these modules never calls autograd.
HELPERS = ("concurrent.futures.process", "debugpy.", "ipykernel.", "logging.", "mlflow.", "multiprocessing.queues", "prometheus_client.",
           "_pydevd_bundle.", "tensorboard.", "tensorboardX.", "torch._inductor.", "torch.utils.data.", "tqdm.", "wandb.", "zmq.")
# Functions in which a thread waits for another thread, which is checked, too.
WAITS = {("threading", "join"), ("threading", "_shutdown"), ("concurrent.futures.thread", "_worker"), ("concurrent.futures._base", "result"),
         ("concurrent.futures._base", "wait"), ("concurrent.futures._base", "as_completed")}


def quiet(agent):
    """Whether the agent may read autograd's graph now."""
    return not agent.ticker.acts() and rests(agent.ticker.thread)


def rests(own):
    """Whether no thread but this one and our own may call autograd while its graph is read."""
    return all(helps(frame) for thread, frame in current().items() if thread not in (get_ident(), own))


def helps(frame):
    """Whether the thread with this innermost frame is a library's helper, or waits for other threads."""
    while frame is not None and place(frame) not in WAITS and place(frame)[0] == "threading":
        frame = back(frame)
    if frame is None or place(frame) in WAITS:
        return frame is not None
    first = ""
    while frame is not None:
        module = place(frame)[0]
        first = first if module == "threading" else module
        frame = back(frame)
    return first.startswith(HELPERS)


def place(frame):
    """Module and function of a frame."""
    module = dict.get(frame.f_globals, "__name__")
    return module if type(module) is str else "", frame.f_code.co_name
