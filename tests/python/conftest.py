"""The tests of the Python package: on a GPU, or under tessera-emu. Without a device there is nothing to run."""

import os

import numpy
import pytest

import tessera


def pytest_collection_modifyitems(items):
    if tessera.device_count() == 0:
        for item in items:
            item.add_marker(pytest.mark.skip(reason="no CUDA device: run this under tessera-emu"))


def pytest_report_header():
    where = "%d.%d" % tessera.compute_capability() if tessera.device_count() else "no device"
    return f"tessera {tessera.__version__} on compute capability {where}, seed {SEED}"


SEED = int(os.environ.get("TESSERA_SEED") or numpy.random.SeedSequence().entropy % 2**32)


@pytest.fixture
def random():
    return numpy.random.default_rng(SEED)


def pytest_sessionfinish():
    import gc

    gc.collect()  # what a traceback or a cycle still holds of the device
