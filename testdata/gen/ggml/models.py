"""Writes convert/testdata/gguf/NAME.gguf: checkpoints of testdata/models as llama.cpp's converter writes them, in bf16.

    models.py DIR [NAME...]

DIR is llama.cpp's source, such as vendor/llama.cpp of the source distribution of llama-cpp-python 0.3.36. Checkpoints
without a tokenizer get none; their vocabulary has the size that config.json says.
"""

import importlib
import json
import logging
import os
import shutil
import sys
import tempfile
from pathlib import Path

os.environ["TRANSFORMERS_OFFLINE"] = "1"
SOURCE = Path(sys.argv[1])
sys.path[:0] = [str(SOURCE), str(SOURCE / "gguf-py")]

import gguf
import torch

TESTDATA = Path(__file__).resolve().parents[2]
OUT = TESTDATA.parent / "convert" / "testdata" / "gguf"
NAMES = [
    "afmoe-published",
    "arcee-saved",
    "cohere-published",
    "cohere2-published",
    "dots1-published",
    "ernie4_5-published",
    "ernie4_5_moe-published",
    "exaone4-published",
    "gemma-published",
    "gemma2-saved",
    "gemma3-published",
    "gemma4-26b-a4b",
    "gemma4-e2b",
    "glm4-saved",
    "gpt2-published",
    "gpt_neox-published",
    "glm4_moe-published",
    "glm4_moe_lite-published",
    "granite-published",
    "granitemoe-published",
    "hunyuan_v1_dense-saved",
    "llama-bias",
    "llama-rope-llama3",
    "llama4-published",
    "nemotron-saved",
    "olmo-published",
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
    "qwen3_moe-default",
    "seed_oss-published",
    "smollm3-published",
    "stablelm-published",
    "starcoder2-published",
]
# The kinds of pre-tokenizers that the converter would recognize in published models.
KINDS = {"qwen3_5": "qwen35", "qwen": "qwen2", "glm4": "glm4", "llama": "llama-bpe", "gemma": "default", "phi3": "gpt-4o",
         "granite": "refact", "olmo": "dbrx", "smollm3": "smaug-bpe", "arcee": "llama-bpe", "cohere": "command-r",
         "ernie4_5": "default", "exaone4": "exaone4", "hunyuan": "hunyuan-dense", "seed_oss": "seed-coder",
         "nemotron": "default", "stablelm": "stablelm2", "starcoder2": "starcoder",
         "gpt2": "gpt-2", "gpt_neox": "olmo", "mixtral": "llama-bpe",
         "dots1": "qwen2", "minimax_m2": "minimax-m2", "afmoe": "afmoe", "phimoe": "default"}
# The published names of classes that transformers calls otherwise.
CLASSES = {"PhimoeForCausalLM": "PhiMoEForCausalLM"}


def convert(name):
    from conversion.base import ModelBase, ModelType, TextModel

    kind = next(kind for start, kind in KINDS.items() if name.startswith(start))
    TextModel.get_vocab_base_pre = lambda self, tokenizer: kind
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / name
        shutil.copytree(TESTDATA / "models" / name, folder)
        # transformers 5 drops keys that the converter reads.
        own, load = json.loads((folder / "config.json").read_text(encoding="utf-8")), ModelBase.load_hparams
        ModelBase.load_hparams = staticmethod(lambda *a, **k: {**own, **load(*a, **k)})
        config = load(folder, False)
        kind_of = CLASSES.get(config["architectures"][0], config["architectures"][0])
        model = ModelBase.from_model_architecture(kind_of, model_type=ModelType.TEXT)
        if not (folder / "tokenizer.json").is_file():
            # Gemma's class counts the entries of a tokenizer.json.
            vocab = {str(i): i for i in range(config.get("text_config", config)["vocab_size"])}
            text = json.dumps({"model": {"vocab": vocab}, "added_tokens": []})
            (folder / "tokenizer.json").write_text(text, encoding="utf-8")

            def nothing(self):
                self.gguf_writer.add_tokenizer_model("none")
                self.gguf_writer.add_tokenizer_pre(kind)

            model = type(model.__name__, (model,), {"set_vocab": nothing, "model_arch": model.model_arch})
        OUT.mkdir(parents=True, exist_ok=True)
        path = OUT / f"{name}.gguf"
        with torch.inference_mode():
            model(folder, gguf.LlamaFileType.MOSTLY_BF16, path).write()
        ModelBase.load_hparams = load
        path.chmod(0o644)


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR)
    for module in ("llama", "qwen", "gemma", "glm", "deepseek", "granite", "olmo", "phi", "command_r", "ernie", "exaone",
                   "hunyuan", "nemotron", "stablelm", "starcoder", "gpt2", "gptneox", "dots1", "minimax",
                   "afmoe"):
        importlib.import_module(f"conversion.{module}")
    for name in sys.argv[2:] or NAMES:
        convert(name)
