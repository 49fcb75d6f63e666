"""Writes convert/gguf/testdata/python.gguf with the gguf package: every kind of metadata, and tensors of four types.

    python testdata/gen/ggml/file.py

Needs gguf==0.19.0 and numpy==2.4.6.
"""

import pathlib

import gguf
import numpy as np

OUT = pathlib.Path(__file__).resolve().parents[3] / "convert" / "gguf" / "testdata" / "python.gguf"


def main() -> None:
    OUT.parent.mkdir(exist_ok=True)
    w = gguf.GGUFWriter(OUT, "llama")
    w.add_uint8("test.uint8", 200)
    w.add_int8("test.int8", -100)
    w.add_uint16("test.uint16", 60000)
    w.add_int16("test.int16", -30000)
    w.add_uint32("test.uint32", 4000000000)
    w.add_int32("test.int32", -2000000000)
    w.add_float32("test.float32", 0.5)
    w.add_uint64("test.uint64", 1 << 40)
    w.add_int64("test.int64", -(1 << 40))
    w.add_float64("test.float64", 0.1)
    w.add_bool("test.bool", True)
    w.add_string("test.string", "grüße")
    w.add_array("test.strings", ["a", "", "c"])
    w.add_array("test.numbers", [1, -2, 3])
    w.add_array("test.arrays", [[1, 2], [3]])
    w.add_tensor("f32", np.arange(6, dtype=np.float32).reshape(2, 3))
    w.add_tensor("f16", np.arange(4, dtype=np.float16).reshape(1, 2, 2))
    q8 = gguf.quantize(np.arange(64, dtype=np.float32).reshape(2, 32), gguf.GGMLQuantizationType.Q8_0)
    w.add_tensor("q8", q8, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    w.add_tensor("one", np.array([7], dtype=np.int32))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


if __name__ == "__main__":
    main()
