"""Writes testdata/sources/bnb-*, bitnet* and hqq*: tiny Llamas whose linear layers are the modules of bitsandbytes, of
transformers' BitNet and of HQQ, as these save them, and their goldens: the logits of transformers in float32 from the
dequantized weights, and digests of what the packages dequantize.

    quantized_modules.py [NAME...]   writes the folders

Needs more than requirements.txt:

    pip install --no-deps bitsandbytes==0.50.2 hqq==0.2.8.post1 termcolor
"""

import hashlib
import json
import shutil
import sys
import tempfile
from pathlib import Path

from quantized import SOURCES as FOLDERS  # first: finds the modules of ../models
import reference  # before transformers: keeps it offline

import bitsandbytes as bnb
import torch
from bitsandbytes.functional import QuantState, dequantize_4bit, int8_vectorwise_dequant
from hqq.core.quantize import BaseQuantizeConfig, HQQLinear, Quantizer
from safetensors.numpy import save_file as save_numpy
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.integrations.bitnet import pack_weights, unpack_weights

import checkpoint
import tiny
from quantized_packed import BASE


def linear(weight, dtype):
    layer = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False, dtype=dtype)
    layer.weight.data = weight.clone()
    return layer


def four(weight, dtype, kind, nested, storage, block):
    """Returns the tensors of a 4-bit layer, and what bitsandbytes dequantizes."""
    param = bnb.nn.Params4bit(weight.clone(), requires_grad=False, blocksize=block, compress_statistics=nested, quant_type=kind,
                              quant_storage=storage).to("cpu")
    parts = {"weight": param.data}
    for name, part in param.quant_state.as_dict(packed=True).items():
        parts["weight." + name] = part
    stats = {name.removeprefix("weight."): part for name, part in parts.items() if name != "weight"}
    state = QuantState.from_dict(stats, torch.device("cpu"))
    return parts, dequantize_4bit(param.data, state)


def eight(weight, dtype):
    layer = bnb.nn.Linear8bitLt(weight.shape[1], weight.shape[0], bias=False, has_fp16_weights=False)
    layer.weight = bnb.nn.Int8Params(weight.clone(), requires_grad=False, has_fp16_weights=False).to("cpu")
    parts = dict(layer.state_dict())
    return parts, int8_vectorwise_dequant(parts["weight"], parts["SCB"])


def bitnet(weight, dtype, divides):
    scale = (1 / weight.float().abs().mean() if divides else weight.float().abs().mean()).to(dtype).reshape(1)
    codes = (weight.float() * scale if divides else weight.float() / scale).round().clamp(-1, 1)
    parts = {"weight": pack_weights(codes.clone()), "weight_scale": scale}
    value = unpack_weights(parts["weight"], torch.float32)
    assert torch.equal(value, codes)
    return parts, value / scale.float() if divides else value * scale.float()


def hqq(weight, dtype, bits, group, axis, viewed):
    config = BaseQuantizeConfig(nbits=bits, group_size=group, axis=axis, view_as_float=viewed)
    layer = HQQLinear(linear(weight, dtype), config, compute_dtype=dtype, device="cpu")
    parts = {name: part.contiguous() for name, part in layer.state_dict().items()}
    return parts, Quantizer.dequantize(layer.W_q, {**layer.meta, "compute_dtype": torch.float32})


def config(kind, **more):
    return {"quant_method": kind, **more}


def bnb_config(**more):
    return config("bitsandbytes", **more, llm_int8_threshold=6.0, llm_int8_skip_modules=["lm_head"])


# name -> (type of the plain tensors, quantization_config, how a layer is made, whether the elements are rounded to that type)
SOURCES = {
    "bnb-nf4": ("bfloat16", bnb_config(load_in_4bit=True, load_in_8bit=False, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True),
                lambda n, w, d: four(w, d, "nf4", True, torch.uint8, 64), True),
    "bnb-fp4": ("float16", bnb_config(load_in_4bit=True, load_in_8bit=False, bnb_4bit_quant_type="fp4", bnb_4bit_use_double_quant=False),
                lambda n, w, d: four(w, d, "fp4", False, torch.float16, 128 if "down_proj" in n else 64), True),
    "bnb-int8": ("float16", bnb_config(load_in_4bit=False, load_in_8bit=True), lambda n, w, d: eight(w, d), False),
    "bitnet": ("bfloat16", config("bitnet", modules_to_not_convert=None), lambda n, w, d: bitnet(w, d, True), False),
    "bitnet-auto": ("bfloat16", config("bitnet", linear_class="autobitlinear", quantization_mode="offline"),
                    lambda n, w, d: bitnet(w, d, False), False),
    "hqq": ("bfloat16", config("hqq", quant_config={"weight_quant_params": {"nbits": 4, "group_size": 64, "axis": 1}}, skip_modules=["lm_head"]),
            lambda n, w, d: hqq(w, d, {"q_proj": 8, "k_proj": 2, "v_proj": 3, "gate_proj": 5}.get(n.split(".")[-2], 4), 64, 1, "down" in n), False),
    "hqq-axis0": ("float16", config("hqq", quant_config={"weight_quant_params": {"nbits": 4, "group_size": 64, "axis": 0}}, skip_modules=["lm_head"]),
                  lambda n, w, d: hqq(w, d, {"q_proj": 8, "v_proj": 3, "up_proj": 6}.get(n.split(".")[-2], 4), 64, 0, "o_proj" in n), True),
}


def attempt(name, seed):
    dtype_name, quantization, make, rounded = SOURCES[name]
    dtype, folder = getattr(torch, dtype_name), FOLDERS / name
    shutil.rmtree(folder, ignore_errors=True)
    stored, plain, digests = {}, {}, {}
    for n, t in LlamaForCausalLM(LlamaConfig(**BASE)).state_dict().items():
        value = tiny.draw(seed, n, tuple(t.shape), False).to(dtype)
        if ".layers." not in n or not n.endswith("_proj.weight"):
            stored[n], plain[n] = value, value.float()
            continue
        parts, dequantized = make(n, value, dtype)
        digests[n] = hashlib.sha256(dequantized.contiguous().view(torch.uint8).numpy().tobytes()).hexdigest()
        plain[n] = (dequantized.to(dtype) if rounded else dequantized).float().contiguous()
        kind = str(dequantized.dtype)
        for part, tensor in parts.items():
            stored[f"{n.removesuffix('.weight')}.{part}"] = tensor.contiguous()
    published = checkpoint.published(BASE, dtype_name)
    folder.mkdir(parents=True)
    checkpoint.write_json(folder / "config.json", dict(published, quantization_config=quantization))
    save_file(stored, folder / "model.safetensors", {"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)
    kind = {"torch.float32": "F32", "torch.bfloat16": "BF16", "torch.float16": "F16"}[kind]
    (folder / "dequantized.json").write_text(json.dumps({"dtype": kind, "sha256": digests}, indent=1) + "\n")
    with tempfile.TemporaryDirectory() as temp:
        # The tokens of the golden depend on the folder's name.
        whole = Path(temp) / name
        whole.mkdir()
        checkpoint.write_json(whole / "config.json", dict(published, torch_dtype="float32"))
        save_file(plain, whole / "model.safetensors", {"format": "pt"})
        golden = reference.compute(whole)
    tiny.judge(golden)
    save_numpy(golden, folder / "reference.safetensors")
    (folder / "reference.safetensors").chmod(0o644)


def main():
    reference.setup()
    for name in sys.argv[1:] or SOURCES:
        tiny.seeds(name, lambda seed, name=name: attempt(name, seed))
        print(name, sum(p.stat().st_size for p in (FOLDERS / name).iterdir()))


if __name__ == "__main__":
    main()
