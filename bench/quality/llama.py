"""llama.cpp's side of the quality benchmark, through llama-cpp-python. Needs numpy.

    llama.py base TEXT.json SOURCE.gguf LOGITS              float32 logits of the unquantized model
    llama.py imatrix WINDOWS.json SOURCE.gguf OUT.npz       mean squares of the inputs of all matrices
    llama.py quantize SOURCE.gguf TYPE OUT.gguf [OUT.npz]   with an importance matrix, if there is one
    llama.py compare TEXT.json LOGITS MODEL.gguf            prints a line of JSON

SOURCE.gguf is of any floating-point type; llama.cpp converts it to F32 first, since it would round the inputs of bf16
matrices to bf16. The importance matrix is what llama-imatrix makes: for each matrix of a block the mean squares of its
input's columns, which llama.cpp shows to a callback while it reads the calibration text. Like it, output and embedding
are left out.
"""

import ctypes
import json
import os
import sys

import llama_cpp as lc
import numpy as np

import score

TYPES = {
    "F32": lc.LLAMA_FTYPE_ALL_F32, "Q8_0": lc.LLAMA_FTYPE_MOSTLY_Q8_0, "Q6_K": lc.LLAMA_FTYPE_MOSTLY_Q6_K,
    "Q5_K_M": lc.LLAMA_FTYPE_MOSTLY_Q5_K_M, "Q4_K_M": lc.LLAMA_FTYPE_MOSTLY_Q4_K_M, "IQ4_XS": lc.LLAMA_FTYPE_MOSTLY_IQ4_XS,
    "Q4_0": lc.LLAMA_FTYPE_MOSTLY_Q4_0, "Q3_K_M": lc.LLAMA_FTYPE_MOSTLY_Q3_K_M, "IQ3_M": lc.LLAMA_FTYPE_MOSTLY_IQ3_M,
    "IQ3_XXS": lc.LLAMA_FTYPE_MOSTLY_IQ3_XXS, "Q2_K": lc.LLAMA_FTYPE_MOSTLY_Q2_K,
}
THREADS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


class Tensor(ctypes.Structure):
    """struct ggml_tensor of ggml.h."""


Tensor._fields_ = [
    ("type", ctypes.c_int), ("buffer", ctypes.c_void_p), ("ne", ctypes.c_int64 * 4), ("nb", ctypes.c_size_t * 4), ("op", ctypes.c_int),
    ("op_params", ctypes.c_int32 * 16), ("flags", ctypes.c_int32), ("src", ctypes.POINTER(Tensor) * 10),
    ("view_src", ctypes.c_void_p), ("view_offs", ctypes.c_size_t), ("data", ctypes.c_void_p), ("name", ctypes.c_char * 64),
    ("extra", ctypes.c_void_p), ("padding", ctypes.c_char * 8),
]
F32 = 0  # GGML_TYPE_F32


def operation_name():
    """ggml_op_name of the library that llama.cpp itself uses."""
    folder = os.path.join(os.path.dirname(lc.__file__), "lib")
    name = next(n for n in ("libggml-base.so", "libggml-base.dylib") if os.path.exists(os.path.join(folder, n)))
    found = ctypes.CDLL(os.path.join(folder, name)).ggml_op_name
    found.argtypes, found.restype = [ctypes.c_int], ctypes.c_char_p
    return found


class Squares:
    """Sums the squares of the inputs of the blocks' matrices."""

    def __init__(self):
        self.sums, self.rows = {}, {}
        self.name_of = operation_name()
        self.callback = lc.ggml_backend_sched_eval_callback(self.see)

    def see(self, address, ask, _):
        t = ctypes.cast(address, ctypes.POINTER(Tensor)).contents
        if self.name_of(t.op) != b"MUL_MAT":
            return not ask
        name, x = t.src[0].contents.name.decode(), t.src[1].contents
        if not name.startswith("blk.") or not name.endswith(".weight"):
            return not ask
        if ask:
            return True
        if x.type != F32 or x.nb[0] != 4 or x.nb[1] != 4 * x.ne[0] or x.ne[2] * x.ne[3] != 1:
            raise SystemExit(f"the input of {name} is not a float32 matrix")
        rows, width = x.ne[1], x.ne[0]
        values = np.ctypeslib.as_array(ctypes.cast(x.data, ctypes.POINTER(ctypes.c_float)), (rows, width)).astype(np.float64)
        self.sums[name] = self.sums.get(name, 0) + (values * values).sum(0)
        self.rows[name] = self.rows.get(name, 0) + rows
        return True


class Model:
    def __init__(self, path, seen=None):
        self.model = lc.llama_model_load_from_file(path.encode(), lc.llama_model_default_params())
        if not self.model:
            sys.exit(f"llama.cpp does not load {path}")
        self.vocab = lc.llama_vocab_n_tokens(lc.llama_model_get_vocab(self.model))
        params = lc.llama_context_default_params()
        params.n_ctx = params.n_batch = params.n_ubatch = score.WINDOW
        params.n_threads = params.n_threads_batch = THREADS
        params.type_k = params.type_v = F32
        params.flash_attn_type = lc.LLAMA_FLASH_ATTN_TYPE_DISABLED
        if seen:
            params.cb_eval = seen.callback
        self.context = lc.llama_init_from_model(self.model, params)
        if not self.context:
            sys.exit("llama.cpp does not make a context")

    def logits(self, tokens, n):
        """The logits of the last n positions."""
        lc.llama_memory_clear(lc.llama_get_memory(self.context), True)
        batch = lc.llama_batch_init(len(tokens), 0, 1)
        batch.n_tokens = len(tokens)
        for i, token in enumerate(tokens):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.seq_id[i][0] = token, i, 1, 0
            batch.logits[i] = i >= len(tokens) - n
        status = lc.llama_decode(self.context, batch)
        lc.llama_batch_free(batch)
        if status:
            sys.exit(f"llama_decode fails with {status}")
        return np.ctypeslib.as_array(lc.llama_get_logits(self.context), (n, self.vocab)).copy()


def base(text, source, path):
    plain = path + ".gguf"
    quantize(source, "F32", plain)
    model = Model(plain)
    score.Judge(read(text), path).base(model.logits)
    os.remove(plain)
    os.rename(path + ".part", path)


def imatrix(windows, source, path):
    plain = path + ".gguf"
    quantize(source, "F32", plain)
    squares = Squares()
    model = Model(plain, squares)
    for tokens in read(windows):
        model.logits(tokens, 1)
    if not squares.sums:
        sys.exit("llama.cpp showed no input of a matrix")
    np.savez(path + ".part.npz", **{name: (s / squares.rows[name]).astype(np.float32) for name, s in squares.sums.items()})
    os.remove(plain)
    os.rename(path + ".part.npz", path)


def quantize(source, kind, path, importance=None):
    params = lc.llama_model_quantize_default_params()
    params.ftype, params.nthread = TYPES[kind], THREADS
    if importance:
        held = [(name.encode(), np.ascontiguousarray(values)) for name, values in np.load(importance).items()]
        data = (lc.llama_model_imatrix_data * (len(held) + 1))()
        for entry, (name, values) in zip(data, held):
            entry.name, entry.size = name, values.size
            entry.data = values.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        params.imatrix = ctypes.cast(data, ctypes.POINTER(lc.llama_model_imatrix_data))
    if lc.llama_model_quantize(source.encode(), (path + ".part").encode(), ctypes.byref(params)):
        sys.exit(f"llama.cpp does not quantize {source} to {kind}")
    os.rename(path + ".part", path)


def compare(text, logits, path):
    model = Model(path)
    found = score.Judge(read(text), logits).compare(model.logits)
    print(json.dumps({**found, "bytes": lc.llama_model_size(model.model)}))


def read(path):
    with open(path) as f:
        return json.load(f)


@lc.llama_log_callback
def log(level, text, _):
    if level == 4:  # GGML_LOG_LEVEL_ERROR
        sys.stderr.write(text.decode(errors="replace"))


if __name__ == "__main__":
    lc.llama_log_set(log, None)
    lc.llama_backend_init()
    {"base": base, "imatrix": imatrix, "quantize": quantize, "compare": compare}[sys.argv[1]](*sys.argv[2:])
