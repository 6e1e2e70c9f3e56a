#!/usr/bin/env python3
"""Times tessera in PyTorch on a GPU: what a call costs on the host, and a layer with GELU, forward and backward.

    PYTHONPATH=build/sdk/python python3 bench/torch_layers.py [--json FILE]

Host: calls of a small product in a row, without waiting; microseconds per call, the median of many rows.
Forward: tessera.torch.Linear(activation="gelu") beside F.gelu(F.linear(...)), bf16. Both are timed in turns, as replays of a
CUDA graph with several calls in it, and eagerly. Each call has another of several inputs, so that not everything stays in the
L2 cache. Medians.
Backward: the gradients of input, weight and bias, eagerly, with the forward pass in it.
A ratio above 1 means that tessera is faster.
"""

import argparse
import json
import math
import statistics
import time

import torch
import torch.nn.functional as F

import tessera
import tessera.torch

# (rows, in_features, out_features): layers of transformers from a few tokens to many, and of vision models.
LAYERS = [
    (16, 4096, 14336), (64, 4096, 4096), (64, 8192, 8192), (128, 4096, 14336), (256, 1024, 4096), (256, 5120, 5120), (512, 4096, 4096),
    (512, 8192, 8192), (512, 768, 3072), (1024, 1024, 4096), (1024, 4096, 1024), (2048, 2048, 2048), (2048, 5120, 5120), (2048, 4096, 14336),
    (2048, 14336, 4096), (3136, 768, 3072), (4096, 1024, 4096), (4096, 4096, 4096), (4096, 8192, 8192), (8192, 1024, 4096),
    (8192, 4096, 4096), (8192, 8192, 8192), (12544, 384, 1536), (16384, 2048, 8192),
]


def host_microseconds(call, rows=60, calls=100):
    for _ in range(200):
        call()
    times = []
    for _ in range(rows):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        times.append((time.perf_counter() - start) / calls * 1e6)
    torch.cuda.synchronize()
    return statistics.median(times)


def host_cost():
    a = torch.randn(64, 64, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(64, 64, device="cuda", dtype=torch.bfloat16)
    out = torch.empty_like(a)
    layer = tessera.torch.Linear(64, 64, activation="gelu", device="cuda", dtype=torch.bfloat16)
    calls = {
        "torch.mm(a, b)": lambda: torch.mm(a, b),
        "tessera.gemm(a, b)": lambda: tessera.gemm(a, b),
        "torch.mm(a, b, out=out)": lambda: torch.mm(a, b, out=out),
        "tessera.gemm(a, b, out=out)": lambda: tessera.gemm(a, b, out=out),
        "F.gelu(F.linear(a, w, bias))": lambda: F.gelu(F.linear(a, layer.weight, layer.bias)),
        "layer(a)": lambda: layer(a),
    }
    with torch.no_grad():
        return {name: min(host_microseconds(call) for _ in range(3)) for name, call in calls.items()}


def graph_of(calls):
    for call in calls:
        call()
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for call in calls:
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls:
            call()
    return graph


def device_microseconds(work, count):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    work()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e3 / count


def in_turns(ours, theirs, count, rounds):
    """Medians of both."""
    for work in (ours, theirs) * 2:
        work()
    torch.cuda.synchronize()
    times = [(device_microseconds(ours, count), device_microseconds(theirs, count)) for _ in range(rounds)]
    return [statistics.median(side) for side in zip(*times)]


def layer_times(rows, features, out_features, rounds=25):
    torch.manual_seed(0)
    layer = tessera.torch.Linear(features, out_features, activation="gelu", device="cuda", dtype=torch.bfloat16)
    ring = max(2, min(8, math.ceil(100e6 / (2 * rows * features))))
    inputs = [torch.randn(rows, features, device="cuda", dtype=torch.bfloat16) for _ in range(ring)]
    flops = 2.0 * rows * features * out_features
    repeats = max(1, math.ceil(300e-6 / (ring * max(flops / 600e12, 5e-6))))
    samples = inputs * repeats

    def forward_of(function):
        return [lambda x=x: function(x) for x in samples]

    ours, theirs = forward_of(layer), forward_of(lambda x: F.gelu(F.linear(x, layer.weight, layer.bias)))
    with torch.no_grad():
        exact = F.gelu(F.linear(inputs[0].double(), layer.weight.double(), layer.bias.double()))
        error = float((layer(inputs[0]).double() - exact).abs().max() / exact.abs().max())
        assert error < 2**-7, f"{rows}x{features}x{out_features}: the result is off by {error:.1e}"
        graphs = graph_of(ours), graph_of(theirs)
        replayed = in_turns(graphs[0].replay, graphs[1].replay, len(samples), rounds)

        def run(calls):
            return lambda: [call() for call in calls] and None

        eager = in_turns(run(ours), run(theirs), len(samples), rounds)
    gradient = torch.randn(rows, out_features, device="cuda", dtype=torch.bfloat16)

    def trained(function):
        leaves = [x.detach().requires_grad_() for x in inputs]

        def step():
            for x in leaves:
                torch.autograd.grad(function(x), (x, layer.weight, layer.bias), gradient)
        return step

    backward = in_turns(trained(layer), trained(lambda x: F.gelu(F.linear(x, layer.weight, layer.bias))), len(inputs), max(5, rounds // 3))
    return {"rows": rows, "in": features, "out": out_features, "replayed": replayed, "eager": eager, "backward": backward, "error": error}


def mean(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="where to write the figures")
    parser.add_argument("--layers", type=int, default=len(LAYERS), help="how many of the layers")
    parser.add_argument("--rounds", type=int, default=25)
    arguments = parser.parse_args()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, tessera {tessera.__version__}")
    host = host_cost()
    for name, cost in host.items():
        print(f"{cost:8.2f} us  {name}")
    print(f"{host['tessera.gemm(a, b)'] - host['torch.mm(a, b)']:+8.2f} us  tessera.gemm more than torch.mm")
    print("\n   rows     in    out |   graph: ours   torch  ratio |   eager: ours   torch  ratio | training: ours   torch  ratio")
    results = []
    for layer in LAYERS[:arguments.layers]:
        result = layer_times(*layer, rounds=arguments.rounds)
        results.append(result)
        parts = [f"{result[kind][0]:12.1f} {result[kind][1]:8.1f} {result[kind][1] / result[kind][0]:6.2f}"
                 for kind in ("replayed", "eager", "backward")]
        print(f"{layer[0]:7d} {layer[1]:6d} {layer[2]:6d} | " + " | ".join(parts), flush=True)
    for kind in ("replayed", "eager", "backward"):
        ratios = [result[kind][1] / result[kind][0] for result in results]
        print(f"{kind}: geometric mean {mean(ratios):.3f}, least {min(ratios):.3f}")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "host": host, "layers": results}, file, indent=1)


if __name__ == "__main__":
    main()
