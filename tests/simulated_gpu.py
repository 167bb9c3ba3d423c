"""A GPU that is simulated on the CPU: code for `cuda` runs on a machine, and on a build of torch, without CUDA.

A tensor of the device (`OnDevice`) reports `cuda:N` and keeps its values in a CPU tensor. torch dispatches by the
reported device, so autograd, autocast and the gradient scaler take the same paths as on a GPU. Each operation runs on
the CPU tensors after the checks that a GPU makes:

- operands on different devices raise an error, except where CUDA accepts them (`_may_be_on_cpu`)
- a generator of the CPU cannot draw on the device, which has a random state of its own
- integer matrix products are not implemented
- NumPy cannot read the memory of the device

Kernels, streams, memory and NCCL are not simulated, nor more than one device in a process: `cuda:1` can be named, but
torch's own code asks the guard of the devices, which is written in Python and knows `cuda:0` only.
"""

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, distributed
from torch.utils._pytree import tree_flatten, tree_map_only

aten = torch.ops.aten
LIBRARIES = ("libc10.so", "libtorch_cpu.so")
CUDA, PRIVATE = 1, 20
"""numbers of torch's device types"""
FUNCTIONS = 100
"""virtual functions to copy, at least as many as the CUDA hooks have"""
MEMORY = 12345
"""what the simulated device reports as its peak memory"""
PRODUCTS = {aten.mm, aten.bmm, aten.addmm, aten.baddbmm, aten.mv, aten.dot, aten.addmv}
ON_CPU_ANYWAY = {aten._pack_padded_sequence: 1, aten._pad_packed_sequence: 1}
"""operation -> number of the argument that must be on the CPU"""

WIDENING: dict[Any, Callable[..., tuple[Any, ...]]] = {
    aten._softmax: lambda values, dim, wider: (values.float() if wider else values, dim, False),
    aten._log_softmax: lambda values, dim, wider: (values.float() if wider else values, dim, False),
}
"""operations that only a GPU can do together with a cast from half precision to fp32"""


class OnDevice(Tensor):
    """A tensor of the simulated device."""

    held: Tensor
    """its values"""

    @staticmethod
    def __new__(cls, held: Tensor, device: torch.device) -> "OnDevice":
        made: OnDevice = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls,
            held.shape,
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=device,
        )
        made.held = held
        return made

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"{self.held!r} on {self.device}"

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        return GPU.run(func, args, dict(kwargs or {}))


class SimulatedGpu:
    """The state of the simulated devices: which one is current, and their random states."""

    def __init__(self) -> None:
        self.count = 1
        self.current = 0
        self.calls = 0
        """operations that have run on a device"""
        self.random = [torch.Generator().get_state()]

    def reset(self, count: int) -> None:
        self.count, self.current, self.calls = count, 0, 0
        self.random = [torch.Generator().manual_seed(number).get_state() for number in range(count)]

    def place(self, device: Any) -> torch.device:
        """Return a device with its number; `cuda` is the current one."""
        found = torch.device(device)
        if found.type == "cuda" and found.index is None:
            found = torch.device("cuda", self.current)
        assert found.type != "cuda" or found.index < self.count, f"{found} of {self.count} devices"
        return found

    def put(self, values: Tensor, device: torch.device) -> Tensor:
        return OnDevice(values, device) if device.type == "cuda" else values

    def run(self, func: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
        """Check an operation as a GPU does and run it on the values."""
        self.calls += 1
        name = func.overloadpacket
        if torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd"):
            return func.decompose(*args, **options)  # in inference mode, autograd has not done so
        if name is aten.copy_:
            _held(args[0]).copy_(_held(args[1]))
            return args[0]
        if name is aten._fused_sdp_choice:
            return 0  # the kernel that is made of other operations
        tensors = [leaf for leaf in tree_flatten((args, options))[0] if isinstance(leaf, Tensor)]
        device = tensors[0].device if tensors else torch.device("cpu")
        if name is not aten._to_copy:
            device = self._checked(func, args, options, tensors)
        if options.get("device") is not None:
            device = self.place(options["device"])
            options["device"] = torch.device("cpu")
        options.pop("pin_memory", None)
        values, named = _held(tuple(args)), _held(options)
        if name in WIDENING:
            values = WIDENING[name](*values)
        if torch.Tag.nondeterministic_seeded in func.tags and device.type == "cuda":
            with self._drawing(device):
                found = func(*values, **named)
        else:
            found = func(*values, **named)
        known = {id(tensor.held): tensor for tensor in tensors if isinstance(tensor, OnDevice)}
        result = tree_map_only(Tensor, lambda one: known[id(one)] if id(one) in known else self.put(one, device), found)
        for tensor in tensors:
            assert tensor.shape == _held(tensor).shape, f"{func} changes the shape of its argument: not simulated"
        return result

    def _checked(self, func: Any, args: Sequence[Any], options: dict[str, Any], tensors: list[Tensor]) -> torch.device:
        """Return the device of the operands; raise the errors of a GPU."""
        name = func.overloadpacket
        if name in ON_CPU_ANYWAY:
            number = ON_CPU_ANYWAY[name]
            if args[number].device.type != "cpu":
                raise RuntimeError(f"{func}: argument {number} must be on the CPU")
            return args[0].device
        devices = {tensor.device for tensor in tensors if tensor.device.type != "cpu"}
        on_cpu = [tensor for tensor in tensors if tensor.device.type == "cpu"]
        if len(devices) > 1 or (devices and not _may_be_on_cpu(func, args, options, on_cpu)):
            found = ", ".join(f"{tensor.device} {tuple(tensor.shape)}" for tensor in tensors)
            raise RuntimeError(f"{func}: Expected all tensors to be on the same device, found {found}")
        if not devices:
            return torch.device("cpu")
        if options.get("generator") is not None:
            raise RuntimeError(f"{func}: Expected a 'cuda' device type for generator but found 'cpu'")
        if name in PRODUCTS and not tensors[0].is_floating_point():
            raise RuntimeError(f'"{func}" not implemented for {tensors[0].dtype}')
        return devices.pop()

    @contextmanager
    def _drawing(self, device: torch.device) -> Iterator[None]:
        """Draw from the random state of the device and leave that of the CPU as it is."""
        assert device.index is not None
        before = torch.get_rng_state()
        torch.set_rng_state(self.random[device.index])
        try:
            yield
        finally:
            self.random[device.index] = torch.get_rng_state()
            torch.set_rng_state(before)

    def seed_all(self, seed: int) -> None:
        self.random = [torch.Generator().manual_seed(seed).get_state() for _ in range(self.count)]

    def state(self, device: Any = "cuda") -> Tensor:
        return self.random[self._number(device)].clone()

    def set_state(self, state: Tensor, device: Any = "cuda") -> None:
        self.random[self._number(device)] = state.clone()

    def select(self, device: Any) -> None:
        self.current = self._number(device)

    @contextmanager
    def selected(self, device: Any) -> Iterator[None]:
        before, self.current = self.current, self._number(device)
        try:
            yield
        finally:
            self.current = before

    def _number(self, device: Any) -> int:
        index = device if isinstance(device, int) else self.place(device).index
        assert index is not None
        return index


GPU = SimulatedGpu()


def _held(values: Any) -> Any:
    return tree_map_only(OnDevice, lambda one: one.held, values)


def _may_be_on_cpu(func: Any, args: Sequence[Any], options: dict[str, Any], on_cpu: list[Tensor]) -> bool:
    """Whether CUDA accepts CPU tensors beside its own: single numbers in elementwise operations, and indices."""
    if func.overloadpacket in (aten.index, aten.index_put, aten.index_put_, aten._index_put_impl_):
        operands = [args[0], *args[2:3]]
        return isinstance(args[0], OnDevice) and all(
            isinstance(one, OnDevice) or one.ndim == 0 for one in operands if isinstance(one, Tensor)
        )
    written = [options.get("out"), args[0] if func._schema.is_mutable and args else None]
    if any(tensor is one for tensor in on_cpu for one in written):
        return False
    return not on_cpu or (torch.Tag.pointwise in func.tags and all(tensor.ndim == 0 for tensor in on_cpu))


LSTM, TOLIST, CONNECT = torch._VF.lstm, Tensor.tolist, distributed.init_process_group


def _connect(backend: str, **options: Any) -> None:
    """Connect with gloo, which sums the values; NCCL needs GPUs."""
    assert backend == "nccl", "weft connects GPUs with NCCL"
    CONNECT("gloo", **options)


def _tolist(self: Tensor) -> Any:
    """torch copies the tensor of a GPU to the CPU, but accepts no subclass."""
    return TOLIST(self.cpu())


def _lstm(hidden: Tensor, states: Sequence[Tensor], weights: Sequence[Tensor], *settings: Any) -> tuple[Tensor, ...]:
    """An LSTM of one layer, from operations that the CPU has too; a GPU uses cuDNN. `hidden` is [n, l, w]."""
    if hidden.device.type == "cpu":
        return LSTM(hidden, states, weights, *settings)
    has_bias, layers, _, _, both_ways, batch_first = settings
    assert (has_bias, layers, batch_first) == (True, 1, True)
    outputs, ends, cells = [], [], []
    for way in range(2 if both_ways else 1):
        of_input, of_state, *biases = weights[4 * way : 4 * way + 4]
        state, cell = states[0][way], states[1][way]
        steps = list(hidden.unbind(1))
        seen = []
        for step in reversed(steps) if way else steps:
            gates = step @ of_input.T + state @ of_state.T + sum(biases)
            enter, forget, new, leave = gates.chunk(4, dim=1)
            cell = forget.sigmoid() * cell + enter.sigmoid() * new.tanh()
            state = leave.sigmoid() * cell.tanh()
            seen.append(state)
        outputs.append(torch.stack(seen[::-1] if way else seen, dim=1))
        ends.append(state)
        cells.append(cell)
    return torch.cat(outputs, dim=2), torch.stack(ends), torch.stack(cells)


def _empty(size: Sequence[int], dtype: Any = None, device: Any = "cuda", **_: Any) -> Tensor:
    return OnDevice(torch.empty(size, dtype=dtype, device="cpu"), GPU.place(device))


def _empty_strided(
    size: Any, stride: Any, dtype: Any = None, layout: Any = None, device: Any = "cuda", **_: Any
) -> Any:
    return OnDevice(torch.empty_strided(size, stride, dtype=dtype, device="cpu"), GPU.place(device))


def _made(name: str) -> Callable[..., Tensor]:
    """An operation that makes a tensor whose size follows from numbers."""

    def make(*args: Any, device: Any = "cuda", **options: Any) -> Tensor:
        options.pop("pin_memory", None)
        return OnDevice(getattr(torch, name)(*args, device="cpu", **options), GPU.place(device))

    return make


def _copied(self: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    _held(self).copy_(_held(source))
    return self


class _Guard(torch._C._acc.DeviceGuard):
    def type_(self) -> Any:
        return torch._C._autograd.DeviceType.CUDA  # type: ignore[attr-defined]


class Registration:
    """Makes torch believe that it has CUDA devices, in a build without CUDA.

    torch registers devices from Python under the name of a private device only. This code for `cuda` therefore writes
    to two tables of its C++ libraries: the registry of device guards, and the virtual functions of the CUDA hooks.
    """

    def __init__(self) -> None:
        core, operations = (ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / name)) for name in LIBRARIES)
        guards = (ctypes.c_void_p * 21).in_dll(core, "_ZN3c104impl26device_guard_impl_registryE")
        assert guards[CUDA] is None, "this build of torch has CUDA"
        self.guard = _Guard()
        torch._C._acc.register_python_privateuseone_device_guard(self.guard)  # type: ignore[attr-defined]
        guards[CUDA], guards[PRIVATE] = guards[PRIVATE], None
        hooks = operations._ZN2at6detail12getCUDAHooksEv
        hooks.restype = ctypes.c_void_p
        self.functions = ctypes.c_void_p.from_address(hooks())
        self.before = self.functions.value
        assert self.before is not None
        self.own = (ctypes.c_void_p * FUNCTIONS).from_buffer_copy(
            (ctypes.c_void_p * FUNCTIONS).from_address(self.before)
        )
        self.yes = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p)(lambda _: True)
        for slot in (2, 3, 4):  # isBuilt, isAvailable, hasPrimaryContext
            self.own[slot] = ctypes.cast(self.yes, ctypes.c_void_p).value
        self.library = torch.library.Library("aten", "IMPL")
        self.library.impl("empty.memory_format", _empty, "CUDA")
        self.library.impl("empty_strided", _empty_strided, "CUDA")
        self.library.impl("copy_", _copied, "CUDA")
        for name in ("arange", "arange.start", "arange.start_step", "eye", "eye.m", "randperm"):
            self.library.impl(name, _made(name.partition(".")[0]), "CUDA")

    @contextmanager
    def active(self) -> Iterator[None]:
        self.functions.value = ctypes.addressof(self.own)
        try:
            assert str(torch._C._get_accelerator()) == "cuda"
            yield
        finally:
            self.functions.value = self.before


@cache
def _registered() -> Registration:
    return Registration()


@contextmanager
def simulated_gpu(count: int = 1) -> Iterator[SimulatedGpu]:
    """Inside, torch finds `count` GPUs."""
    registration = _registered()
    GPU.reset(count)
    replaced: dict[str, Callable[..., Any]] = {
        "is_available": lambda: True,
        "is_bf16_supported": lambda *_: True,
        "device_count": lambda: count,
        "current_device": lambda: GPU.current,
        "set_device": GPU.select,
        "device": GPU.selected,
        "manual_seed_all": GPU.seed_all,
        "get_rng_state": GPU.state,
        "set_rng_state": GPU.set_state,
        "max_memory_allocated": lambda *_: MEMORY,
        "synchronize": lambda *_: None,
        "_lazy_init": lambda: None,
    }
    before = torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(True)  # `Module.to` keeps its parameters, as on a GPU
    undo = [patch.object(torch.cuda, name, act) for name, act in replaced.items()]
    undo.append(patch.object(torch.cuda, "_initialized", True))
    undo.append(patch.object(torch.backends.cudnn, "is_acceptable", lambda *_: False))
    undo.append(patch.object(Tensor, "tolist", _tolist))
    undo.append(patch.object(distributed, "init_process_group", _connect))
    undo.append(patch.object(torch._VF, "lstm", _lstm))
    try:
        for one in undo:
            one.start()
        with registration.active():
            yield GPU
    finally:
        for one in undo:
            one.stop()
        torch.__future__.set_swap_module_params_on_conversion(before)
