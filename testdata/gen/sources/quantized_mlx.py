"""Writes testdata/sources/mlx-*: checkpoints that mlx-lm quantizes and writes, by its own recipes and by others."""

import json
from pathlib import Path

import quantized  # first: finds the modules of ../models
import reference  # before transformers: keeps it offline

import mlx.core as mx
import numpy as np
import torch
from mlx_lm.convert import mixed_quant_predicate_builder
from mlx_lm.utils import load_model, quantize_model, save_config, save_model

from quantized import MODELS, golden


def layer(bits, group=64, mode="affine"):
    return {"bits": bits, "group_size": group, "mode": mode}


def torch_of(array):
    return torch.tensor(np.array(array.astype(mx.float32)))


def dequantize(folder):
    """Returns the tensors of a folder, packed ones dequantized in float32."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    how = config["quantization"]
    stored = {}
    for path in folder.glob("model*.safetensors"):
        stored.update(mx.load(str(path)))
    out = {}
    for name, array in stored.items():
        path, kind = name.rsplit(".", 1) if "." in name else ("", name)
        if f"{path}.scales" not in stored or kind == "bias":
            out[name] = torch_of(array)
            continue
        if kind != "weight":
            continue
        own = {**{k: how[k] for k in ("bits", "group_size")}, "mode": how.get("mode", "affine")}
        if isinstance(how.get(path), dict):
            own = {"mode": "affine", **how[path]}
        scales, biases = stored[f"{path}.scales"], stored.get(f"{path}.biases")
        if own["mode"] == "affine":
            scales, biases = scales.astype(mx.float32), biases.astype(mx.float32)
        out[name] = torch_of(mx.dequantize(array, scales, biases, group_size=own["group_size"], bits=own["bits"], mode=own["mode"], dtype=mx.float32))
    return config, out


def joined(tensors):
    """Joins the latent projections of keys and values, which mlx-lm splits."""
    out = {n: t for n, t in tensors.items() if not n.endswith((".embed_q.weight", ".unembed_out.weight"))}
    for name, keys in tensors.items():
        if name.endswith(".embed_q.weight"):
            base = name.removesuffix(".embed_q.weight")
            both = torch.cat([keys.transpose(1, 2), tensors[base + ".unembed_out.weight"]], dim=1)
            out[base + ".kv_b_proj.weight"] = both.flatten(0, 1)
    return out


def mlx(model, bits, group, mode="affine", recipe=None, predicate=None):
    """Converts a folder as `mlx_lm.convert` does, without the tokenizer."""

    def make(folder):
        # mlx-lm reads the vocabulary of a multimodal gemma4 at the top of config.json, where published files have it.
        stored = json.loads((MODELS / model / "config.json").read_text(encoding="utf-8"))
        text = {"vocab_size": stored["text_config"]["vocab_size"]} if "text_config" in stored else None
        loaded, config = load_model(MODELS / model, lazy=True, model_config=text)
        choose = mixed_quant_predicate_builder(recipe, loaded, group) if recipe else predicate
        loaded, config = quantize_model(loaded, config, group, bits, mode=mode, quant_predicate=choose)
        save_model(folder, loaded)
        save_config(config, folder / "config.json")
        (folder / "model.safetensors.index.json").unlink()
        for path in folder.iterdir():
            path.chmod(0o644)
        config, dense = dequantize(folder)
        golden(folder, config, joined(dense))

    return make


def every(path, module):
    """Chooses all widths and group sizes, and for some layers other modes or none."""
    if not hasattr(module, "to_quantized"):
        return False
    kinds = [layer(2, 32), layer(3, 64), layer(5, 32), layer(6, 64), layer(8, 32), layer(4, 32, "mxfp4"), layer(8, 32, "mxfp8"), layer(4, 16, "nvfp4"), False, True]
    if path.endswith("mlp.down_proj"):
        return layer(5, 128)
    return kinds[sum(map(ord, path)) % len(kinds)]


MAKERS = {
    "mlx-mixed_2_6": mlx("llama-tied", 4, 64, recipe="mixed_2_6"),
    "mlx-mixed_3_4": mlx("qwen3-default", 4, 64, recipe="mixed_3_4"),
    "mlx-every": mlx("qwen3-default", 4, 32, predicate=every),
    "mlx-int4-g32": mlx("llama-default", 4, 32),
    "mlx-mxfp8": mlx("llama-tied", 8, 32, mode="mxfp8"),
    "mlx-nvfp4": mlx("llama-tied", 4, 16, mode="nvfp4"),
    "mlx-experts": mlx("qwen3_moe-stacked", 4, 32),
    "mlx-gemma4-experts": mlx("gemma4-26b-a4b-mlx", 6, 32),
    "mlx-glm4": mlx("glm4_moe_lite-published", 4, 16, mode="nvfp4"),
    "mlx-qwen3_next": mlx("qwen3_5_moe-next-published", 4, 32),
    "mlx-qwen3_5": mlx("qwen3_5_moe-mlx", 5, 32),
}

if __name__ == "__main__":
    quantized.main(MAKERS)
