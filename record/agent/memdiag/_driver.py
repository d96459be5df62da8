"""What the driver reports of a GPU's memory. It includes what the allocator does not know: the context, NCCL's buffers, and what other
libraries take.

The figures come from NVIDIA's NVML and AMD's ROCm SMI, not from CUDA or HIP: these libraries create no context, wait for no kernel, and
cannot break the capture of a graph. If the library or the GPU in it is missing, nothing is reported.
"""

import ctypes

from ._real import os

# The number of the system's own process namespace. In another one, such as a container's, NVML's process ids are not those that the process
# knows.
SYSTEM_NAMESPACE = 0xEFFFFFFC
UNKNOWN = -1
# ROCm SMI's number for a GPU's own memory.
VRAM = 0
# NVML's value for a figure that it does not have.
NOT_AVAILABLE = (1 << 64) - 1
# Processes on one GPU that are looked through, at most.
PROCESSES = 256


class Memory(ctypes.Structure):
    _fields_ = [(n, ctypes.c_ulonglong) for n in ("total", "free", "used")]


class Process(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("instance", ctypes.c_uint), ("compute", ctypes.c_uint)]


def of(torch, name):
    """The driver of an accelerator. Raises an error if its library is missing."""
    if name != "cuda":
        return Told(getattr(torch, name))
    return Amd() if getattr(torch.version, "hip", None) else Driver()


class Figures:
    """A GPU's memory is memory(index): bytes used by this process, or None; bytes used by all; and bytes in total. None if the GPU is not
    known."""

    def figures(self, reserved):
        """Entries of a snapshot's header. reserved: bytes that the allocator has, by GPU."""
        used, limits, whole = [], [], 0
        for index in range(max(reserved, default=-1) + 1):
            memory = self.memory(index) if index in reserved else None
            if memory is None:
                used.append(UNKNOWN)
                limits.append(UNKNOWN)
                continue
            own, all_, total = memory
            whole |= own is None
            used.append(all_ if own is None else own)
            # The allocator cannot have what others and the context use.
            limits.append(max(total - max(all_ - reserved[index], 0), 0))
        if all(n == UNKNOWN for n in used):
            return {}
        return {"driver": ",".join(map(str, used)), "driver_whole": int(whole), "limit": ",".join(map(str, limits))}


class Told(Figures):
    """An accelerator whose module reports free memory."""

    def __init__(self, module):
        self.ask = module.mem_get_info

    def memory(self, index):
        free, total = self.ask(index)
        return None, total - free, total


class Amd(Figures):
    """Raises OSError or AttributeError if ROCm SMI is missing."""

    def __init__(self):
        self.smi, self.hip = ctypes.CDLL("librocm_smi64.so"), ctypes.CDLL("libamdhip64.so")
        if self.smi.rsmi_init(ctypes.c_uint64(0)):
            raise OSError("ROCm SMI does not start")
        count, place = ctypes.c_uint32(), ctypes.c_uint64()
        self.smi.rsmi_num_monitor_devices(ctypes.byref(count))
        self.numbers = {}  # by place on the bus, since HIP_VISIBLE_DEVICES renumbers GPUs
        for n in range(count.value):
            if not self.smi.rsmi_dev_pci_id_get(n, ctypes.byref(place)):
                self.numbers[place.value >> 32, place.value >> 8 & 0xFF, place.value >> 3 & 0x1F] = n

    def memory(self, index):
        name, used, total = ctypes.create_string_buffer(32), ctypes.c_uint64(), ctypes.c_uint64()
        if self.hip.hipDeviceGetPCIBusId(name, len(name), index):
            return None
        domain, bus, rest = name.value.decode("ascii").split(":")
        number = self.numbers.get((int(domain, 16), int(bus, 16), int(rest.split(".")[0], 16)))
        if number is None or self.smi.rsmi_dev_memory_usage_get(number, VRAM, ctypes.byref(used)) or self.smi.rsmi_dev_memory_total_get(number, VRAM, ctypes.byref(total)):
            return None
        return None, used.value, total.value


class Driver(Figures):
    """NVIDIA's driver. Raises OSError or AttributeError if NVML is missing."""

    def __init__(self):
        self.nvml, self.cuda = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.CDLL("libcuda.so.1")
        if self.nvml.nvmlInit_v2():
            raise OSError("NVML does not start")
        self.handles = {}  # by CUDA's index: NVML's handle, or None
        try:
            self.knows_pids = os.stat("/proc/self/ns/pid").st_ino == SYSTEM_NAMESPACE
        except OSError:
            self.knows_pids = False

    def handle(self, index):
        """NVML's handle of a GPU. It is found by UUID, since CUDA_VISIBLE_DEVICES renumbers GPUs."""
        if index not in self.handles:
            device, uuid, handle = ctypes.c_int(), (ctypes.c_ubyte * 16)(), ctypes.c_void_p()
            found = False
            if not self.cuda.cuDeviceGet(ctypes.byref(device), index) and not self.cuda.cuDeviceGetUuid_v2(uuid, device):
                h = bytes(uuid).hex()
                name = "-".join((h[:8], h[8:12], h[12:16], h[16:20], h[20:]))
                found = any(not self.nvml.nvmlDeviceGetHandleByUUID((kind + name).encode(), ctypes.byref(handle)) for kind in ("GPU-", "MIG-"))
            self.handles[index] = handle if found else None
        return self.handles[index]

    def memory(self, index):
        """Bytes of a GPU: used by this process, or None; used by all; and in total. None if the GPU is not known."""
        handle, memory = self.handle(index), Memory()
        if handle is None or self.nvml.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)):
            return None
        return self.own(handle), memory.used, memory.total

    def own(self, handle):
        ask = getattr(self.nvml, "nvmlDeviceGetComputeRunningProcesses_v3", None)
        if not self.knows_pids or ask is None:
            return None
        count, processes = ctypes.c_uint(PROCESSES), (Process * PROCESSES)()
        if ask(handle, ctypes.byref(count), processes):
            return None
        return next((p.used for p in processes[: count.value] if p.pid == os.getpid() and p.used != NOT_AVAILABLE), None)
