"""Communicators from the process groups of torch: of a stand-in whose ranks are threads, and of a real torch, if there is one."""

import importlib.util
import os
import subprocess
import sys
import threading
import types

import numpy
import pytest

import tessera

pytestmark = [
    pytest.mark.skipif(tessera.device_count() < 2, reason="there is one device"),
    pytest.mark.skipif("TESSERA_NCCL" not in os.environ, reason="TESSERA_NCCL names no NCCL"),
]


class Group:
    """A process group whose ranks are threads."""

    def __init__(self, size):
        self.size, self.own, self.texts, self.barrier = size, threading.local(), [None], threading.Barrier(size, timeout=30)
        self.backend = types.SimpleNamespace()

    def broadcast(self, texts, src, group):
        assert src == 7 and group is self
        if self.own.rank == 0:
            self.texts[:] = texts
        self.barrier.wait()
        texts[:] = self.texts

    def _get_backend(self, device):
        if self.backend is None:
            raise RuntimeError("No backend type associated with device type cuda")
        return self.backend


@pytest.fixture
def group(monkeypatch):
    group = Group(2)
    torch = types.ModuleType("torch")
    torch.__version__ = "2.6.0"
    torch.device = lambda kind, index=None: types.SimpleNamespace(index=index)
    torch.cuda = types.SimpleNamespace(is_available=lambda: False)
    torch.distributed = types.SimpleNamespace(
        is_available=lambda: True, is_initialized=lambda: True, get_rank=lambda group: group.own.rank,
        get_world_size=lambda group: group.size, get_global_rank=lambda group, rank: 7 + rank,
        broadcast_object_list=group.broadcast, group=types.SimpleNamespace(WORLD=group))
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch.distributed", torch.distributed)
    return group


def run_ranks(group, work):
    results = [None] * group.size

    def run(rank):
        group.own.rank = rank
        try:
            results[rank] = work(rank)
        except Exception as error:
            results[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(group.size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def gather(ranks):
    from tessera.distributed import ShardedGemm

    def ones(*shape):
        return tessera.asarray(numpy.ones(shape), "f32", device=ranks.device)

    out = ones(6, 4)
    ShardedGemm(ranks, ones(3, 5), ones(5, 4), out, shape=(6, 8, 5), kind="all_gather")()
    ranks.synchronize()
    return out.numpy()


def test_ranks_meet_by_the_group(group):
    from tessera.distributed import Communicator

    def work(rank):
        with Communicator.from_torch(group, device=rank) as ranks:
            assert (ranks.rank, ranks.size, ranks.device) == (rank, 2, rank)
            return gather(ranks)

    for result in run_ranks(group, work):
        numpy.testing.assert_array_equal(result, numpy.full((6, 4), 5))


def test_the_device_is_the_current_one_of_torch_or_that_of_local_rank(group, monkeypatch):
    from tessera.distributed import _torch_device

    torch = sys.modules["torch"]
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert _torch_device(None) == 1
    torch.cuda = types.SimpleNamespace(is_available=lambda: True, current_device=lambda: 5)
    assert _torch_device(None) == 5
    assert _torch_device(2) == 2
    assert _torch_device("cuda") == 5


def test_a_rank_that_fails_before_does_not_leave_the_others_in_the_broadcast(group):
    from tessera.distributed import Communicator

    def work(rank):
        Communicator.from_torch(group, device=99 if rank == 0 else rank)

    first, second = run_ranks(group, work)
    assert isinstance(first, tessera.Error) and "99" in str(first)
    assert isinstance(second, tessera.Error) and "rank 0 of 2 failed" in str(second) and "99" in str(second)


def test_what_the_broadcast_raises_passes_through(group):
    from tessera.distributed import Communicator

    def broken(text):
        assert text
        raise ConnectionError("the store is gone")

    with pytest.raises(ConnectionError, match="the store is gone"):
        Communicator.from_broadcast(0, 2, 0, broken)
    with pytest.raises(tessera.Error, match="the broadcast returned 1"):
        Communicator.from_broadcast(0, 2, 0, lambda text: None)
    with pytest.raises(tessera.Error, match='rank 1 received "hello" by the broadcast'):
        Communicator.from_broadcast(1, 2, 1, lambda text: "hello")


def test_the_communicator_of_the_backend_is_borrowed(group):
    from tessera.distributed import Communicator

    owners = Communicator.of_devices([0, 1], copy_engines=False)

    def work(rank):
        group.own.rank = rank
        with Communicator.from_torch(group, device=rank, borrow=True) as ranks:
            assert ranks.nccl == owners[rank].nccl
            return gather(ranks)

    group.backend._comm_ptr = lambda: owners[group.own.rank].nccl
    for result in run_ranks(group, work):
        numpy.testing.assert_array_equal(result, numpy.full((6, 4), 5))
    for owner in owners:
        assert owner.size == 2  # still there
        owner.close()


def test_what_is_missing_is_said(group, monkeypatch):
    from tessera.distributed import Communicator

    def message(**options):
        with pytest.raises(tessera.Error) as raised:
            Communicator.from_torch(group, device=0, **options)
        return str(raised.value)

    group.own.rank = 0
    assert "of torch 2.6.0 does not hand out its communicator" in message(borrow=True)
    group.backend._comm_ptr = lambda: 0
    assert "torch has not made the group's communicator yet" in message(borrow=True)
    group.backend = None
    assert "no backend for CUDA: No backend type" in message(borrow=True)
    group.own.rank = -1
    assert "not one of the group's" in message()
    sys.modules["torch"].distributed.is_initialized = lambda: False
    assert "torch has no process group" in message()
    sys.modules["torch"].distributed.is_available = lambda: False
    assert "built without torch.distributed" in message()
    monkeypatch.setitem(sys.modules, "torch", None)
    assert "torch cannot be imported" in message()


RANK = """
import os, numpy, tessera, torch.distributed
from tessera.distributed import Communicator, ShardedGemm
torch.distributed.init_process_group("gloo")
with Communicator.from_torch(device=int(os.environ["LOCAL_RANK"])) as ranks:
    rank = torch.distributed.get_rank()
    assert (ranks.rank, ranks.size, ranks.device) == (rank, 2, rank), repr(ranks)
    a = tessera.asarray(numpy.full((3, 5), rank + 1.0), "f32", device=rank)
    b = tessera.asarray(numpy.ones((5, 4)), "f32", device=rank)
    out = tessera.asarray(numpy.zeros((6, 4)), "f32", device=rank)
    ShardedGemm(ranks, a, b, out, shape=(6, 8, 5), kind="all_gather")()
    ranks.synchronize()
    assert (out.numpy() == numpy.repeat([5.0, 10.0], 3)[:, None]).all(), out.numpy()
try:
    Communicator.from_torch(borrow=True)
except tessera.Error as error:
    assert "no backend for CUDA" in str(error) or "does not hand out its communicator" in str(error), error
else:
    raise AssertionError("gloo has no communicator of NCCL's")
torch.distributed.destroy_process_group()
"""


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="there is no torch")
def test_a_group_of_gloo():
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ranks = []
    for rank in range(2):
        around = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        ranks.append(subprocess.Popen([sys.executable, "-c", RANK], env=around, stderr=subprocess.PIPE, text=True))
    errors = [rank.communicate(timeout=120)[1] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], errors
