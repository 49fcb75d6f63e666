"""Measures llama.cpp through llama-cpp-python: llama.py MODEL.gguf THREADS obeys standard input, JSON lines as bench/cpu's.

Timed is llama_decode alone, up to the end of its work: no tokenizer before it, no sampler behind it. The K/V cache is f16,
batches are of up to 512 tokens. "flash" chooses flash attention.
llama.py quantize IN.gguf OUT.gguf Q4_0|Q4_K makes a model, all of its matrices of that type; with MXFP4 all but the experts
are Q8_0.
"""

import ctypes
import json
import random
import sys
import time

import llama_cpp as lc

BATCH = 512
CONTEXT = 4608
TYPES = {"Q4_0": lc.LLAMA_FTYPE_MOSTLY_Q4_0, "Q4_K": lc.LLAMA_FTYPE_MOSTLY_Q4_K_S, "MXFP4": lc.LLAMA_FTYPE_MOSTLY_MXFP4_MOE}


@lc.llama_log_callback
def quiet(level, text, data):
    pass


@lc.llama_log_callback
def loud(level, text, data):
    sys.stderr.write(text.decode(errors="replace"))


def quantize(source, target, name):
    params = lc.llama_model_quantize_default_params()
    params.ftype = TYPES[name]
    params.pure = name != "MXFP4"  # as --uniform of ingot create
    if lc.llama_model_quantize(source.encode(), target.encode(), ctypes.byref(params)):
        lc.llama_log_set(loud, None)
        lc.llama_model_quantize(source.encode(), target.encode(), ctypes.byref(params))
        sys.exit(f"llama.cpp does not quantize {source}")


class Context:
    """One sequence. What it holds lasts until another depth is asked for."""

    def __init__(self, model, threads, flash):
        self.vocab = lc.llama_vocab_n_tokens(lc.llama_model_get_vocab(model))
        params = lc.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = CONTEXT, BATCH, BATCH
        params.n_threads = params.n_threads_batch = threads
        params.flash_attn_type = lc.LLAMA_FLASH_ATTN_TYPE_ENABLED if flash else lc.LLAMA_FLASH_ATTN_TYPE_DISABLED
        self.context = lc.llama_init_from_model(model, params)
        if not self.context:
            sys.exit("llama.cpp does not make a context")
        self.memory = lc.llama_get_memory(self.context)
        self.batch = lc.llama_batch_init(BATCH, 0, 1)
        self.held = 0

    def clear(self):
        lc.llama_memory_clear(self.memory, True)
        self.held = 0

    def take(self, tokens):
        """Runs a batch that follows what is held, with the scores of its last token."""
        batch = self.batch
        batch.n_tokens = len(tokens)
        for i, token in enumerate(tokens):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.seq_id[i][0] = token, self.held + i, 1, 0
            batch.logits[i] = i == len(tokens) - 1
        status = lc.llama_decode(self.context, batch)
        if status:
            sys.exit(f"llama_decode fails with {status}")
        lc.llama_synchronize(self.context)
        self.held += len(tokens)

    def some(self, n):
        return random.Random(n).choices(range(self.vocab), k=n)

    def prefill(self, tokens):
        begun = time.perf_counter()
        for at in range(0, len(tokens), BATCH):
            self.take(tokens[at : at + BATCH])
        return time.perf_counter() - begun

    def decode(self, depth, tokens):
        if self.held != depth:
            # What keeps a state instead of keys and values does not go back.
            if self.held > depth and lc.llama_memory_seq_rm(self.memory, 0, depth, -1):
                self.held = depth
            else:
                self.clear()
                self.prefill(self.some(depth))
        ids = self.some(tokens)
        begun = time.perf_counter()
        for token in ids:
            self.take([token])
        return time.perf_counter() - begun


def main(path, threads):
    model = lc.llama_model_load_from_file(path.encode(), lc.llama_model_default_params())
    if not model:
        sys.exit(f"llama.cpp does not load {path}")
    contexts = {}

    def context(command, use):
        key = use, command.get("flash", False)
        if key not in contexts:
            contexts[key] = Context(model, threads, key[1])
        return contexts[key]

    for line in sys.stdin:
        command = json.loads(line)
        if command["op"] == "info":
            result = {"version": lc.__version__, "system": lc.llama_print_system_info().decode().strip(" |"), "bytes": lc.llama_model_size(model)}
        elif command["op"] == "prefill":
            c = context(command, "prefill")
            c.clear()
            result = {"tokens": command["tokens"], "seconds": c.prefill(c.some(command["tokens"]))}
        elif command["op"] == "decode":
            depth = max(command["depth"], 1)
            c = context(command, f"decode at {depth}")  # keeps its prompt from round to round
            result = {"tokens": command["tokens"], "seconds": c.decode(depth, command["tokens"])}
        elif command["op"] == "scores":
            c = context(command, "scores")
            c.clear()
            c.take(command["ids"])
            result = {"scores": lc.llama_get_logits_ith(c.context, -1)[: c.vocab]}
        else:
            sys.exit(f"no op {command['op']}")
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    lc.llama_log_set(quiet, None)
    lc.llama_backend_init()
    if sys.argv[1] == "quantize":
        quantize(*sys.argv[2:])
    else:
        main(sys.argv[1], int(sys.argv[2]))
