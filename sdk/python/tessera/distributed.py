"""Products of matrices that are sharded over several GPUs, over NCCL, with the communication under the product.

    from tessera.distributed import Communicator, ShardedGemm

    with Communicator.from_environment() as ranks:      # one process for each GPU: torchrun, mpirun
        begin, rows = ranks.share(m)                    # this rank's rows of x; w1 and h are its columns
        product = ShardedGemm(ranks, x, w1, h, shape=(m, n, k), kind="all_gather", activation="gelu")
        product()
        ranks.synchronize()

Needs NCCL 2.18.5 or later: TESSERA_NCCL, the loader's path, or the package nvidia-nccl of the environment.
"""

import importlib.util as _util
import os as _os
from pathlib import Path as _Path

from tessera import _core
from tessera._error import Error as _Error

__all__ = ["Communicator", "ShardedGemm"]


def _find_nccl():
    """Names NVIDIA's package, which the loader does not see, unless the user has named a library."""
    if "TESSERA_NCCL" in _os.environ or (spec := _util.find_spec("nvidia")) is None:
        return
    for folder in spec.submodule_search_locations or ():
        library = _Path(folder) / "nccl" / "lib" / "libnccl.so.2"
        if library.exists():
            _os.environ["TESSERA_NCCL"] = str(library)
            return


_find_nccl()


def _torch_distributed():
    """Returns torch.distributed with a default group, or says what is missing."""
    try:
        from torch import distributed
    except ImportError as error:
        raise _Error(f"invalid_argument: torch cannot be imported: {error}\n  try: pip install torch, or Communicator.from_environment()",
                     "invalid_argument") from error
    if not distributed.is_available():
        raise _Error("invalid_argument: this torch was built without torch.distributed\n  try: another build, or "
                     "Communicator.from_environment()", "invalid_argument")
    if not distributed.is_initialized():
        raise _Error("invalid_argument: torch has no process group\n  try: torch.distributed.init_process_group() before",
                     "invalid_argument")
    return distributed


def _torch_device(device):
    import torch

    if device is None and not torch.cuda.is_available():
        return int(_os.environ.get("LOCAL_RANK", 0)) % max(_core.device_count(), 1)
    if isinstance(device, int):
        return device
    index = torch.device("cuda" if device is None else device).index
    return torch.cuda.current_device() if index is None else index


def _torch_communicator(group, device):
    """Returns the address of the communicator that torch's backend has."""
    import torch

    group = torch.distributed.group.WORLD if group is None else group
    try:
        backend = group._get_backend(torch.device("cuda", device))
    except RuntimeError as error:
        raise _Error(f"invalid_argument: the process group has no backend for CUDA: {error}\n  try: a group with the backend nccl, or "
                     "borrow=False", "invalid_argument") from error
    if not hasattr(backend, "_comm_ptr"):
        raise _Error(f"invalid_argument: {type(backend).__name__} of torch {torch.__version__} does not hand out its communicator\n"
                     "  try: torch 2.7 or later with the backend nccl, or borrow=False", "invalid_argument")
    if not (address := backend._comm_ptr()):
        raise _Error("invalid_argument: torch has not made the group's communicator yet\n  try: pass device_id to init_process_group, or "
                     "call a collective of the group before", "invalid_argument")
    return address


class Communicator:
    """One rank of a group of GPUs that multiply together. Used by one thread at a time.

    `with` closes it at the end; if an exception passes, the other ranks are told, and their waits raise an Error that names this
    rank.
    """

    def __init__(self, core):
        self._core = core

    @classmethod
    def from_environment(cls, *, timeout=60.0, max_ctas=0, copy_engines=True):
        """Joins the group that torchrun's, mpirun's or Slurm's variables describe. All ranks call it.

        timeout is in seconds, for this and for every later wait. max_ctas bounds a kernel of NCCL's (0: NCCL chooses). copy_engines
        may move the data where NCCL can use them.
        """
        return cls(_core._Communicator.from_environment(timeout, max_ctas, copy_engines))

    @classmethod
    def of_devices(cls, devices, *, timeout=60.0, max_ctas=0, copy_engines=True):
        """Returns a communicator for each device of this process: rank i has devices[i]. Use each in a thread of its own."""
        return [cls(core) for core in _core._Communicator.of_devices(list(devices), timeout, max_ctas, copy_engines)]

    @classmethod
    def from_broadcast(cls, rank, size, device, broadcast, *, timeout=60.0, max_ctas=0, copy_engines=True):
        """Joins a group whose processes have a broadcast already: of mpi4py, or of a store. All ranks call it.

        broadcast is called once on each rank: on rank 0 with a text, on the others with None. It gives the text to all ranks, and returns
        it. What it raises passes through.
        """
        return cls(_core._Communicator.from_broadcast(rank, size, device, broadcast, timeout, max_ctas, copy_engines))

    @classmethod
    def from_torch(cls, group=None, *, device=None, borrow=False, timeout=60.0, max_ctas=0, copy_engines=True):
        """Joins the ranks of a process group of torch.distributed, the default one if group is None. All its ranks call it.

        Any backend will do: the ranks tell each other by the group where to meet, and get a communicator of NCCL's of their own, which
        close() ends. device is an ordinal or a torch.device; otherwise it is torch's current one, or LOCAL_RANK's where torch has no CUDA.

        With borrow=True, the communicator of the group's NCCL backend is used instead (torch 2.7 and later). PyTorch owns it: close this
        one, and its products, before destroy_process_group. Do not let collectives of the group overlap with products. Ranks do not
        hear of each other's failures, and copy engines do not move the data.
        """
        distributed = _torch_distributed()
        rank = distributed.get_rank(group)
        if rank < 0:
            raise _Error("invalid_argument: this process is not one of the group's\n  try: call it on the group's ranks only", "invalid_argument")
        device = _torch_device(device)
        if borrow:
            return cls(_core._Communicator.borrow(_torch_communicator(group, device), timeout, max_ctas))
        root = distributed.get_global_rank(group, 0) if group is not None else 0

        def broadcast(text):
            texts = [text]
            distributed.broadcast_object_list(texts, src=root, group=group)
            return texts[0]

        return cls.from_broadcast(rank, distributed.get_world_size(group), device, broadcast, timeout=timeout, max_ctas=max_ctas,
                                  copy_engines=copy_engines)

    @property
    def nccl(self):
        """The address of NCCL's communicator, an ncclComm_t. It must not be used at the same time as products."""
        return self._core.nccl

    @property
    def rank(self):
        """This rank: 0 <= rank < size."""
        return self._core.rank

    @property
    def size(self):
        """The number of ranks."""
        return self._core.size

    @property
    def device(self):
        """The ordinal of this rank's device."""
        return self._core.device

    def share(self, extent):
        """Returns (begin, count): this rank's part of an extent."""
        return self._core.share(extent)

    def block(self, rows, columns, grid, along="rows"):
        """Returns ((begin, count), (begin, count)): this rank's rows and columns of a matrix by blocks.

        grid is (R, C), the ranks that rows and columns are divided among. Rank r has block (r // C, r % C), or with along="columns"
        block (r % R, r // R).
        """
        return self._core.block(rows, columns, list(grid), along)

    def synchronize(self, stream=None):
        """Waits until all work on a stream is done, a rank fails, or the timeout is over."""
        self._core.synchronize(stream)

    def abort(self, reason):
        """Ends the communicator on all ranks, whose errors name this rank and the reason."""
        self._core.abort(reason)

    def close(self):
        """Tells the other ranks that this one leaves. Products keep what they need of it."""
        self._core.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if error is not None:
            self.abort(f"{kind.__name__}: {error}")
        self.close()

    def __repr__(self):
        return f"Communicator({self._core.describe()})"


class ShardedGemm:
    """A product out = act(alpha * a @ b + bias) of which each rank has a part, prepared once.

    kind            a           b           out
    all_gather      rows        columns     columns
    reduce_scatter  columns     rows        rows
    all_reduce      columns     rows        all of it
    blocks          blocks of a grid (R, C)     blocks of (C, R)    blocks of (C, R)

    a, b and out are this rank's parts, as arrays that gemm takes; shape is (m, n, k) of the whole product, and
    Communicator.share tells which part is whose. The product keeps the arrays. chunks is how many parts a rank's rows are cut into;
    0 lets the library choose. All ranks make the same products, in the same order.

    With kind="blocks", grid=(R, C) and along are those of a, as for Communicator.block. b and out have the grid (C, R), and the other
    order: a of along="rows" needs b and out of along="columns". What comes out can be the a of a next product, whose out then is
    divided as the first a.
    """

    def __init__(self, communicator, a, b, out, *, shape, kind, bias=None, activation=None, alpha=1.0, chunks=0, stream=None,
                 grid=(), along="rows"):
        self._core = _core._ShardedGemm(communicator._core, a, b, out, list(shape), kind, bias, activation or "none", alpha, chunks, stream,
                                        list(grid), along)

    def __call__(self, stream=None):
        """Launches the product on all ranks and returns out. Does not wait."""
        return self._core.launch(stream)

    @property
    def chunks(self):
        """The number of chunks: 1 if nothing overlaps."""
        return self._core.chunks

    def explain(self):
        """Says what is enqueued, and what the model expects."""
        return self._core.explain()
