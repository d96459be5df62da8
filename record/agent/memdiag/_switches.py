"""Turns off parts of a program for memdiag doctor, to see without which part a leak is gone. The source is not changed."""

import collections
import functools

HOOKS = (
    "register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook", "register_full_backward_pre_hook", "register_backward_hook",
)


class Switches:
    """Which of "workers", "hooks", "compile" and "autocast" are off. Counts how often they were used."""

    def __init__(self, agent, names):
        self.agent, self.names, self.used = agent, names, 0

    def off(self, torch):
        """Called after PyTorch is imported, before the program uses it."""
        for name in filter(None, self.names):
            getattr(self, name)(torch)

    def workers(self, torch):
        import torch.utils.data as data

        old = data.DataLoader.__init__

        @functools.wraps(old)
        def init(loader, *args, **named):
            if named.get("num_workers"):
                self.used += 1
                for name in "num_workers", "prefetch_factor", "persistent_workers", "timeout", "multiprocessing_context":
                    named.pop(name, None)
            return old(loader, *args, **named)

        self.agent.replace(data.DataLoader, "__init__", init)

    def hooks(self, torch):
        from torch.utils.hooks import RemovableHandle

        def register(module, *args, **named):
            self.used += 1
            return RemovableHandle(collections.OrderedDict())

        for name in HOOKS:
            if hasattr(torch.nn.Module, name):
                self.agent.replace(torch.nn.Module, name, register)

    def compile(self, torch):
        def compile(model=None, **named):
            self.used += 1
            return (lambda m: m) if model is None else model

        if hasattr(torch, "compile"):
            self.agent.replace(torch, "compile", compile)

    def autocast(self, torch):
        cls = torch.amp.autocast_mode.autocast
        old = cls.__init__

        @functools.wraps(old)
        def init(context, *args, **named):
            if named.get("enabled", True):
                self.used += 1
            named["enabled"] = False
            return old(context, *args[:2], **named)

        self.agent.replace(cls, "__init__", init)
