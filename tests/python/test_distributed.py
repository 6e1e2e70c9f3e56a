"""Several GPUs: on emulated devices, against a stand-in for NCCL. Ranks are threads."""

import os
import threading

import numpy
import pytest

import tessera

pytestmark = [
    pytest.mark.skipif(tessera.device_count() < 2, reason="there is one device"),
    pytest.mark.skipif("TESSERA_NCCL" not in os.environ, reason="TESSERA_NCCL names no NCCL"),
]


def run_ranks(work, **options):
    """Runs work(communicator) in a thread for each device, and returns what each returned or raised."""
    from tessera.distributed import Communicator

    results = [None] * tessera.device_count()

    def run(communicator):
        rank = communicator.rank
        try:
            with communicator:
                results[rank] = work(communicator)
        except Exception as error:
            results[rank] = error

    threads = [threading.Thread(target=run, args=(each,))
               for each in Communicator.of_devices(range(tessera.device_count()), **options)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def part(matrix, communicator, axis):
    begin, count = communicator.share(matrix.shape[axis])
    return numpy.ascontiguousarray(numpy.take(matrix, range(begin, begin + count), axis))


def on_device(values, communicator):
    return tessera.asarray(values, "f32", device=communicator.device)


@pytest.fixture
def whole(random):
    return [random.integers(-3, 4, shape).astype("f") for shape in ((37, 24), (24, 18), (18,))]


@pytest.mark.parametrize("chunks", [1, 2])
def test_a_gathered_a(whole, chunks):
    from tessera.distributed import ShardedGemm

    a, b, bias = whole

    def work(ranks):
        out = on_device(numpy.zeros((37, ranks.share(18)[1]), "f"), ranks)
        product = ShardedGemm(ranks, on_device(part(a, ranks, 0), ranks), on_device(part(b, ranks, 1), ranks), out, shape=(37, 18, 24),
                              kind="all_gather", bias=on_device(part(bias, ranks, 0), ranks), activation="relu", chunks=chunks)
        assert product.chunks == chunks and "all-gather of A" in product.explain()
        assert product() is out
        ranks.synchronize()
        return out.numpy()

    expected = numpy.maximum(a @ b + bias, 0)
    numpy.testing.assert_array_equal(numpy.concatenate(run_ranks(work), 1), expected)


@pytest.mark.parametrize("kind", ["reduce_scatter", "all_reduce"])
@pytest.mark.parametrize("chunks", [1, 2])
def test_a_sum_over_ranks(whole, kind, chunks):
    from tessera.distributed import ShardedGemm

    a, b, _ = whole

    def work(ranks):
        rows = ranks.share(37)[1] if kind == "reduce_scatter" else 37
        out = on_device(numpy.zeros((rows, 18), "f"), ranks)
        ShardedGemm(ranks, on_device(part(a, ranks, 1), ranks), on_device(part(b, ranks, 0), ranks), out, shape=(37, 18, 24), kind=kind,
                    alpha=2.0, chunks=chunks)()
        ranks.synchronize()
        return out.numpy()

    results = run_ranks(work)
    if kind == "reduce_scatter":
        numpy.testing.assert_array_equal(numpy.concatenate(results), 2 * (a @ b))
    else:
        for result in results:
            numpy.testing.assert_array_equal(result, 2 * (a @ b))


@pytest.mark.parametrize("along", ["rows", "columns"])
@pytest.mark.parametrize("chunks", [1, 2])
def test_blocks(whole, along, chunks):
    from tessera.distributed import ShardedGemm

    a, b, bias = whole
    size = tessera.device_count()
    other = "columns" if along == "rows" else "rows"
    for grid in [(rows, size // rows) for rows in range(1, size + 1) if size % rows == 0]:
        crosswise = (grid[1], grid[0])
        expected = numpy.maximum(a @ b + bias, 0)

        def block(matrix, ranks, grid, along):
            (row, rows), (column, columns) = ranks.block(*matrix.shape, grid, along)
            return numpy.ascontiguousarray(matrix[row:row + rows, column:column + columns])

        def work(ranks):
            mine = block(expected, ranks, crosswise, other)
            column, columns = ranks.block(37, 18, crosswise, other)[1]
            out = on_device(numpy.zeros_like(mine), ranks)
            product = ShardedGemm(ranks, on_device(block(a, ranks, grid, along), ranks), on_device(block(b, ranks, crosswise, other), ranks),
                                  out, shape=(37, 18, 24), kind="blocks", grid=grid, along=along,
                                  bias=on_device(bias[column:column + columns], ranks), activation="relu", chunks=chunks)
            assert "reduce-scatter of D" in product.explain()
            product()
            ranks.synchronize()
            numpy.testing.assert_array_equal(out.numpy(), mine)

        for result in run_ranks(work):
            assert result is None, result


def test_a_rank_that_raises_is_named_by_the_others(whole):
    from tessera.distributed import ShardedGemm

    a, b, _ = whole

    def work(ranks):
        out = on_device(numpy.zeros((37, ranks.share(18)[1]), "f"), ranks)
        product = ShardedGemm(ranks, on_device(part(a, ranks, 0), ranks), on_device(part(b, ranks, 1), ranks), out, shape=(37, 18, 24),
                              kind="all_gather")
        if ranks.rank == 1:
            raise ValueError("a bad batch")
        product()
        ranks.synchronize()

    first, second = run_ranks(work)
    assert isinstance(second, ValueError)
    assert isinstance(first, tessera.CommunicationError) and first.code == "communication_failed"
    assert "rank 1 of 2 failed: ValueError: a bad batch" in str(first)


def test_refusals_name_the_values(whole):
    from tessera.distributed import Communicator, ShardedGemm

    def work(ranks):
        a = on_device(numpy.zeros((4, 4), "f"), ranks)
        with pytest.raises(tessera.Error, match="'gather' is no kind of product"):
            ShardedGemm(ranks, a, a, a, shape=(4, 4, 4), kind="gather")
        with pytest.raises(tessera.Error, match="rank . of 2 has a matrix of 4x4, but its part of 6x4 by_rows is 3x4"):
            ShardedGemm(ranks, a, a, a, shape=(6, 4, 4), kind="all_gather")
        with pytest.raises(tessera.Error, match="'all_gather' has no grid of ranks"):
            ShardedGemm(ranks, a, a, a, shape=(4, 4, 4), kind="all_gather", grid=(2, 1))
        with pytest.raises(tessera.Error, match="a product by blocks needs a grid"):
            ShardedGemm(ranks, a, a, a, shape=(4, 4, 4), kind="blocks")
        with pytest.raises(tessera.Error, match="a grid of 3 x 1 has other places than the 2 ranks"):
            ranks.block(4, 4, (3, 1))
        with pytest.raises(tessera.Error, match="not counted along 'ranks'"):
            ranks.block(4, 4, (2, 1), along="ranks")
        ranks.close()
        with pytest.raises(tessera.Error, match="was closed"):
            ranks.synchronize()

    for result in run_ranks(work):
        assert result is None, result
    with pytest.raises(tessera.Error, match="timeout above 0"):
        Communicator.of_devices([0], timeout=0)
