"""A golden file for checkpoint/safetensors: tensors of several types and shapes, written by the `safetensors` package.
Writes tests/golden/safetensors/mixed.safetensors; the test writes the same tensors and expects the same bytes."""

import pathlib

import numpy
import safetensors.numpy

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/safetensors"


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    tensors = {
        "b.weight": numpy.arange(6, dtype=numpy.float32).reshape(2, 3) / 4,
        "a.weight": numpy.arange(4, dtype=numpy.float32) - 2,
        "half": numpy.array([1.5, -2.0], dtype=numpy.float16),
        "counts": numpy.array([[1], [2]], dtype=numpy.int64),
        "bytes": numpy.array([0, 255, 7], dtype=numpy.uint8),
        "scalar": numpy.array(3.25, dtype=numpy.float64),
        "empty": numpy.zeros((0, 5), dtype=numpy.float32),
        "nom accentu\u00e9": numpy.array([True, False]),
    }
    safetensors.numpy.save_file(tensors, OUT / "mixed.safetensors", metadata={"format": "pt"})
    print("safetensors: mixed.safetensors")


if __name__ == "__main__":
    main()
