"""Tensors on accelerators whose allocators have no record, such as Apple's. They are recorded storage by storage, like tensors on the CPU."""

from . import _accelerator


class Elsewhere:
    def __init__(self):
        self.left_out = set()  # types of devices that are not recorded here
        self.devices = {}  # by storage: type and index of its device, if that is not the CPU

    def leave_out(self, torch):
        """Leaves out accelerators with a record of their own, and devices without memory."""
        self.left_out = {"meta", *(gpu.name for gpu in _accelerator.find(torch))}

    def of(self, tensor):
        """Whether a tensor that is not on the CPU is recorded here."""
        return not tensor.is_cuda and tensor.device.type not in self.left_out

    def note(self, address, tensor):
        """Records the device of a storage."""
        if not tensor.is_cpu:
            device = tensor.device
            self.devices[address] = device.type, device.index or 0
        elif self.devices:
            self.devices.pop(address, None)  # left by a storage that is gone

    def __call__(self, snapshot, space):
        """Returns a function from a storage to its device in a snapshot. The function adds the device there."""
        numbers = {}

        def device(address):
            kind, index = self.devices.get(address, ("cpu", 0))
            if (kind, index) not in numbers:
                numbers[kind, index] = snapshot.device(kind, "tensor storages", space=space, index=index)
            return numbers[kind, index]

        return device
