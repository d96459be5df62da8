"""Tensors that lie on accelerators whose allocators have no record, as Apple's: they are recorded as those on the CPU are, storage by
storage."""

from . import _accelerator


class Elsewhere:
    def __init__(self):
        self.left_out = set()  # kinds of devices that are not recorded here
        self.devices = {}  # by storage: kind and index, of those that do not lie on the CPU

    def leave_out(self, torch):
        """Leaves accelerators with a record to that, and what has no memory."""
        self.left_out = {"meta", *(gpu.name for gpu in _accelerator.find(torch))}

    def of(self, tensor):
        """Whether a tensor that does not lie on the CPU is recorded here."""
        return not tensor.is_cuda and tensor.device.type not in self.left_out

    def note(self, address, tensor):
        """Takes note of where a storage lies."""
        if not tensor.is_cpu:
            device = tensor.device
            self.devices[address] = device.type, device.index or 0
        elif self.devices:
            self.devices.pop(address, None)  # of one that is gone

    def __call__(self, snapshot, space):
        """What gives the device of a storage in a snapshot, which it adds there."""
        numbers = {}

        def device(address):
            kind, index = self.devices.get(address, ("cpu", 0))
            if (kind, index) not in numbers:
                numbers[kind, index] = snapshot.device(kind, "tensor storages", space=space, index=index)
            return numbers[kind, index]

        return device
