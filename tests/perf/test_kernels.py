from importlib import import_module

import pytest

pytest.importorskip("torch")


def test_time_in_which_kernels_overlap_counts_once() -> None:
    kernels = import_module("kernels")
    spans = [(0.0, 1.0), (0.5, 0.75), (0.9, 2.0), (3.0, 3.5), (3.5, 4.0)]
    assert kernels.busy_s([kernels.Kernel("k", *span) for span in spans]) == pytest.approx(3.0)
    assert kernels.busy_s([]) == 0


def test_kernels_copies_and_fills_are_read_from_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = import_module("kernels")
    events = [
        {"ph": "X", "cat": "kernel", "name": "second", "ts": 30.0, "dur": 5.0},
        {"ph": "X", "cat": "gpu_memcpy", "name": "first", "ts": 10.0, "dur": 2.0},
        {"ph": "X", "cat": "gpu_memset", "name": "third", "ts": 40.0, "dur": 1.0},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 1.0, "dur": 1.0},
        {"ph": "M", "name": "process_name"},
    ]
    monkeypatch.setattr(kernels.json, "loads", lambda _: {"traceEvents": events})
    found = kernels.kernels(lambda: None)
    assert [each.name for each in found] == ["first", "second", "third"]
    assert kernels.busy_s(found) == pytest.approx(8e-6)
