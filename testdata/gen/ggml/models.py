"""Writes convert/testdata/gguf/NAME.gguf: checkpoints of testdata/models as llama.cpp's converter writes them, in bf16.

    models.py DIR [NAME...]
    models.py DIR --to FOLDER [--type f32] [NAME...]

DIR is llama.cpp's source, such as vendor/llama.cpp of the source distribution of llama-cpp-python 0.3.36. Checkpoints
without a tokenizer get none; their vocabulary has the size that config.json says.

With --to, all checkpoints are written into FOLDER, with a refused.json: why the converter has no file of a checkpoint.
TestGGUFLogits (INGOT_TEST_GGUF=FOLDER) compares their logits with those of the checkpoints.
"""

import argparse
import importlib
import json
import logging
import os
import pkgutil
import shutil
import sys
import tempfile
from pathlib import Path

os.environ["TRANSFORMERS_OFFLINE"] = "1"
PARSER = argparse.ArgumentParser(usage=__doc__)
PARSER.add_argument("source", type=Path)
PARSER.add_argument("names", nargs="*")
PARSER.add_argument("--to", type=Path)
PARSER.add_argument("--type", default="bf16", choices=["f32", "bf16"])
ARGS = PARSER.parse_intermixed_args()
SOURCE = ARGS.source
sys.path[:0] = [str(SOURCE), str(SOURCE / "gguf-py")]

import gguf
import torch
from safetensors import safe_open

TESTDATA = Path(__file__).resolve().parents[2]
OUT = TESTDATA.parent / "convert" / "testdata" / "gguf"
NAMES = [
    "afmoe-published",
    "apertus-saved",
    "arcee-saved",
    "bamba-published",
    "cohere-published",
    "cohere2-published",
    "cohere2_moe-published",
    "deepseek_v2-published",
    "deepseek_v3-published",
    "deepseek_v32-published",
    "dots1-published",
    "ernie4_5-published",
    "ernie4_5_moe-published",
    "exaone4-published",
    "exaone_moe-saved",
    "falcon_h1-gate_first",
    "gemma-published",
    "gemma2-saved",
    "gemma3-published",
    "gemma3n-published",
    "gemma4-26b-a4b",
    "gemma4-e2b",
    "glm4-saved",
    "gpt2-published",
    "gpt_neox-published",
    "gpt_oss-published",
    "glm4_moe-published",
    "glm4_moe_lite-published",
    "glm_moe_dsa-published",
    "granite-published",
    "granitemoe-published",
    "granitemoehybrid-published",
    "hunyuan_v1_dense-saved",
    "hunyuan_v1_moe-saved",
    "jamba-published",
    "kimi_linear-published",
    "laguna-published",
    "lfm2-published",
    "lfm2_moe-published",
    "llama-bias",
    "llama-rope-llama3",
    "llama4-published",
    "nemotron-saved",
    "mamba-published",
    "mamba2-published",
    "mimo_v2_flash-published",
    "nemotron_h-published",
    "olmo-published",
    "minicpm3-published",
    "minimax_m2-published",
    "mixtral-published",
    "olmo2-saved",
    "olmo3-saved",
    "olmoe-published",
    "phi3-published",
    "phimoe-published",
    "qwen2-saved",
    "qwen2_moe-published",
    "qwen3-default",
    "qwen3_5-published",
    "qwen3_5_moe-published",
    "qwen3_5_moe-next-sparse",
    "qwen3_moe-default",
    "rwkv7-published",
    "seed_oss-published",
    "smollm3-published",
    "stablelm-published",
    "starcoder2-published",
    "youtu-published",
]
# The kinds of pre-tokenizers that the converter would recognize in published models.
KINDS = {"qwen3_5": "qwen35", "qwen": "qwen2", "glm4": "glm4", "llama": "llama-bpe", "gemma": "default", "phi3": "gpt-4o",
         "granite": "refact", "olmo": "dbrx", "smollm3": "smaug-bpe", "arcee": "llama-bpe", "cohere": "command-r",
         "ernie4_5": "default", "exaone4": "exaone4", "hunyuan": "hunyuan-dense", "seed_oss": "seed-coder",
         "nemotron": "default", "stablelm": "stablelm2", "starcoder2": "starcoder",
         "gpt2": "gpt-2", "gpt_neox": "olmo", "mixtral": "llama-bpe",
         "dots1": "qwen2", "minimax_m2": "minimax-m2", "afmoe": "afmoe", "gpt_oss": "gpt-4o",
         "deepseek_v2": "deepseek-llm", "deepseek_v3": "deepseek-v3", "youtu": "youtu", "phimoe": "default",
         "mamba2": "olmo", "minicpm3": "default"}
# The published names of classes that transformers calls otherwise.
CLASSES = {"PhimoeForCausalLM": "PhiMoEForCausalLM"}


TYPES = {"f32": gguf.LlamaFileType.ALL_F32, "bf16": gguf.LlamaFileType.MOSTLY_BF16}


def dtype(name):
    config = json.loads((TESTDATA / "models" / name / "config.json").read_text(encoding="utf-8"))
    config = {**config, **config.get("text_config", {})}
    return config.get("dtype") or config.get("torch_dtype")


def convert(name, to):
    from conversion.base import ModelBase, ModelType, TextModel

    kind = next((kind for start, kind in KINDS.items() if name.startswith(start)), "default")
    TextModel.get_vocab_base_pre = lambda self, tokenizer: kind
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / name
        shutil.copytree(TESTDATA / "models" / name, folder)
        # transformers 5 drops keys that the converter reads.
        own, load = json.loads((folder / "config.json").read_text(encoding="utf-8")), ModelBase.load_hparams
        ModelBase.load_hparams = staticmethod(lambda *a, **k: published({**own, **load(*a, **k)}))
        try:
            (folder / "config.json").write_text(json.dumps(published(own)), encoding="utf-8")
            write(folder, load(folder, False), kind, to / f"{name}.gguf")
        finally:
            ModelBase.load_hparams = load


def published(config):
    """Adds keys that the converter needs: published configurations have them, those that transformers 5 saves do not."""
    text = config.get("text_config", config)
    rope = text.get("rope_parameters") or {}
    more = {}
    match text["model_type"]:
        case "gpt2":
            more = {"n_ctx": text["n_positions"]}
        case "gpt_neox":
            more = {"rotary_pct": rope.get("partial_rotary_factor")}
        case "minimax_m2":
            more = {"rotary_dim": int(text["head_dim"] * rope.get("partial_rotary_factor", 1))}
        case "gemma4_unified_text":
            more = {"moe_intermediate_size": None}
        case "hunyuan_v1_moe":
            layers = text["num_hidden_layers"]
            more = {k: [v] * layers for k, v in (
                ("moe_intermediate_size", text["intermediate_size"]), ("num_shared_expert", 1))}
            if isinstance(text["moe_topk"], int):
                text["moe_topk"] = [text["moe_topk"]] * layers
        case "mimo_v2_flash":
            full, sliding = (rope.get(kind, {}) for kind in ("full_attention", "sliding_attention"))
            more = {"rope_theta": full.get("rope_theta"), "swa_rope_theta": sliding.get("rope_theta"),
                    "partial_rotary_factor": full.get("partial_rotary_factor"), "topk_method": "noaux_tc",
                    "scoring_func": "sigmoid", "swa_num_attention_heads": text["num_attention_heads"],
                    "swa_num_key_value_heads": 2 * text["num_key_value_heads"], "swa_head_dim": text["head_dim"],
                    "swa_v_head_dim": text["v_head_dim"],
                    "hybrid_layer_pattern": [int(kind == "sliding_attention") for kind in text["layer_types"]]}
            text.pop("rope_parameters", None)
        case "bamba":
            dim = text["hidden_size"] // text["num_attention_heads"]
            more = {"attn_rotary_emb": int(dim * rope.get("partial_rotary_factor", 0.5))}
        case "granitemoehybrid":
            names = {"linear_attention": "mamba", "full_attention": "attention"}
            text["layer_types"] = [names.get(kind, kind) for kind in text["layer_types"]]
        case "solar_open":
            more = {"partial_rotary_factor": 1.0}
    text.update({k: v for k, v in more.items() if text.get(k) is None})
    return config


def predicts(folder):
    """Tells whether a checkpoint has a head for further tokens."""
    with safe_open(folder / "model.safetensors", "np") as f:
        return any(name.startswith(("mtp.", "model.mtp.")) for name in f.keys())


def write(folder, config, kind, path):
    from conversion.base import ModelBase, ModelType
    from conversion.qwen import _QwenMtpMixin

    name = config["architectures"][0]
    model = ModelBase.from_model_architecture(CLASSES.get(name, name), model_type=ModelType.TEXT)
    if issubclass(model, _QwenMtpMixin) and not predicts(folder):
        # The converter requires a head for further tokens, unless told that there is none.
        model = type(model.__name__, (model,), {"no_mtp": True, "model_arch": model.model_arch})
    if not (folder / "tokenizer.json").is_file():
        # Gemma's class counts the entries of a tokenizer.json.
        vocab = {str(i): i for i in range(config.get("text_config", config)["vocab_size"])}
        text = json.dumps({"model": {"vocab": vocab}, "added_tokens": []})
        (folder / "tokenizer.json").write_text(text, encoding="utf-8")

        def nothing(self):
            self.gguf_writer.add_tokenizer_model("none")
            self.gguf_writer.add_tokenizer_pre(kind)

        for inner in vars(model).values():  # those that Mistral3Model delegates to
            if isinstance(inner, type):
                inner.set_vocab = nothing
        model = type(model.__name__, (model,), {"set_vocab": nothing, "model_arch": model.model_arch})
    try:
        with torch.inference_mode():
            model(folder, TYPES[ARGS.type], path).write()
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    path.chmod(0o644)


def main():
    import conversion

    for module in pkgutil.iter_modules(conversion.__path__):
        importlib.import_module(f"conversion.{module.name}")
    to = ARGS.to or OUT
    to.mkdir(parents=True, exist_ok=True)
    names = NAMES if ARGS.to is None else sorted(p.parent.name for p in TESTDATA.glob("models/*/config.json"))
    refused = {}
    for name in ARGS.names or names:
        try:
            if ARGS.to is not None and ARGS.type == "bf16" and dtype(name) != "bfloat16":
                raise ValueError("its weights would be rounded to bfloat16")
            convert(name, to)
        except Exception as e:
            if ARGS.to is None:
                raise
            refused[name] = f"{type(e).__name__}: {e}"
            print(f"{name}: {refused[name]}", file=sys.stderr)
    if ARGS.to is not None:
        (to / "refused.json").write_text(json.dumps(refused, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR)
    main()
