"""Writes testdata/sources/fp8-*: checkpoints of 8-bit floats in the published layouts.

block-* is transformers' FP8, as DeepSeek and Qwen publish it (quant_method fp8, weight_scale_inv), ct-*
compressed-tensors' float-quantized, modelopt-* NVIDIA ModelOpt. Codes follow the quantizers: the largest magnitude
under a scale becomes 448.
"""

import re

import torch

import quantized  # first: finds the modules of ../models
import checkpoint
import moe
from quantized import golden, plain

LARGEST = 448.0
E4M3 = torch.float8_e4m3fn


def blocks_of(x, bh, bw):
    """Pads x [..., rows, cols] to whole blocks: [..., down, bh, across, bw]."""
    rows, cols = x.shape[-2:]
    x = torch.nn.functional.pad(x, (0, -cols % bw, 0, -rows % bh))
    return x.unflatten(-1, (-1, bw)).unflatten(-3, (-1, bh))


def quantize(x, bh, bw, power=False):
    """Returns codes, the scale of each block, and the dequantized values in float32."""
    x = x.float()
    split = blocks_of(x, bh, bw)
    scale = (split.abs().amax((-3, -1), keepdim=True) / LARGEST).clamp(min=1e-12)
    if power:
        scale = torch.exp2(torch.ceil(torch.log2(scale)))
    codes = (split / scale).clamp(-LARGEST, LARGEST).to(E4M3)
    value = codes.float() * scale
    back = lambda y: y.flatten(-4, -3).flatten(-2)[..., : x.shape[-2], : x.shape[-1]].contiguous()
    return back(codes), scale.squeeze(-1).squeeze(-2).contiguous(), back(value)


def pick(name, tensor):
    """Reports whether such checkpoints quantize a tensor: linear layers except the output head and routers."""
    return name.endswith(("proj.weight", ".w1.weight", ".w2.weight", ".w3.weight", ".experts.gate_up_proj", ".experts.down_proj"))


def write(folder, config, tensors, quantization, one, picks=pick, **also):
    """Writes a folder. one(name, tensor) returns the stored parts by suffix, and the dequantized tensor."""
    stored, dense = {}, {}
    for name, tensor in tensors.items():
        if not picks(name, tensor):
            stored[name] = dense[name] = tensor
            continue
        parts, dense[name] = one(name, tensor)
        stored.update(parts)
    config = dict(config, quantization_config=quantization)
    checkpoint.write_json(folder / "config.json", config)
    checkpoint.store({n: t.contiguous().clone() for n, t in stored.items()}, folder / "model.safetensors")
    for name, value in also.items():
        checkpoint.write_json(folder / f"{name}.json", value)
    golden(folder, config, dense)


def block(model, bh, bw, power=False, apart=False, fused=False, suffix="_scale_inv", ignored=(), **settings):
    """transformers' FP8. Tensors whose names end in one of ignored stay as they are."""

    def make(folder):
        config, tensors = plain(model)
        if fused:
            tensors = checkpoint.fuse(tensors)
        if apart:
            tensors = checkpoint.apart(tensors)

        def one(name, tensor):
            if name.endswith(ignored):
                return {name: tensor}, tensor
            codes, scale, value = quantize(tensor, bh, bw, power)
            return {name: codes, name + suffix: scale.to(torch.float8_e8m0fnu) if power == "e8m0" else scale}, value

        quantization = {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8", "weight_block_size": [bh, bw], **settings}
        if power:
            quantization["scale_fmt"] = "ue8m0"
        write(folder, config, tensors, quantization, one)

    return make


def compressed(model, strategy, static):
    """compressed-tensors, format float-quantized."""

    def make(folder):
        config, tensors = plain(model)

        def one(name, tensor):
            rows, cols = tensor.shape
            bh, bw = (rows, cols) if strategy == "tensor" else (1, cols)
            codes, scale, value = quantize(tensor, bh, bw)
            base = name.removesuffix(".weight")
            scale = scale.to(torch.bfloat16) if strategy == "channel" else scale.reshape(1)
            value = codes.float() * scale.float().reshape(-1, 1)
            parts = {name: codes, name + "_scale": scale}
            if static:
                parts[base + ".input_scale"] = torch.tensor([0.05])
            if static and base.endswith(("k_proj", "v_proj")):
                parts[base.removesuffix("_proj") + "_scale"] = torch.tensor([0.1])  # scales of the KV cache
            return parts, value

        scheme = {"num_bits": 8, "type": "float", "strategy": strategy, "symmetric": True, "dynamic": False,
                  "group_size": None, "block_structure": None, "observer": "minmax"}
        quantization = {"quant_method": "compressed-tensors", "format": "float-quantized", "quantization_status": "compressed",
                        "ignore": ["lm_head"], "kv_cache_scheme": None, "config_groups": {"group_0": {
                            "targets": ["Linear"], "weights": scheme,
                            "input_activations": dict(scheme, strategy="tensor" if static else "token", dynamic=not static)}}}
        write(folder, config, tensors, quantization, one)

    return make


def modelopt(model):
    """ModelOpt's FP8: scalar scales, and the settings also in a file of their own."""

    def make(folder):
        config, tensors = plain(model)

        def one(name, tensor):
            codes, scale, value = quantize(tensor, *tensor.shape)
            base = name.removesuffix(".weight")
            return {name: codes, name + "_scale": scale.reshape(()), base + ".input_scale": torch.tensor(0.05)}, value

        quantization = {"quant_method": "modelopt", "quant_algo": "FP8", "ignore": ["lm_head"], "producer": {"name": "modelopt", "version": "0.33.0"}}
        write(folder, config, tensors, quantization, one,
              hf_quant_config={"producer": quantization["producer"], "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": None, "exclude_modules": ["lm_head"]}})

    return make


def deepseek_v4(folder):
    """DeepSeek V4: 8-bit floats in blocks, and experts in mxfp4. Scales are powers of two, compressors stay in bf16."""
    config, tensors = plain("deepseek_v4-published")

    def one(name, tensor):
        base = name.removesuffix(".weight")
        if ".ffn.experts." in name:
            # moe.mxfp4 takes and returns matrices [..., in, out].
            value = torch.tensor(moe.mxfp4(tensor.float().numpy().T / 1.2 * tensor.shape[1] ** 0.5).T.copy())
            blocks, scales = moe.to_mxfp4(value.T)
            return {name: blocks.flatten(-2).view(torch.int8), base + ".scale": scales.view(torch.float8_e8m0fnu)}, value
        if re.search(r"\.(wq_a|wq_b|wkv|wo_a|wo_b|w1|w2|w3)\.weight$", name) and ".compressor." not in name:
            codes, scale, value = quantize(tensor, 32, 32, True)
            return {name: codes, base + ".scale": scale.to(torch.float8_e8m0fnu)}, value
        return {name: tensor}, tensor

    config = dict(config, expert_dtype="fp4")
    write(folder, config, tensors, {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8",
                                    "scale_fmt": "ue8m0", "weight_block_size": [32, 32]}, one, picks=lambda *_: True)


MAKERS = {
    "fp8-block": block("qwen3-default", 32, 32),
    "fp8-block-uneven": block("llama-tied", 24, 40, suffix="_scale"),
    "fp8-block-powers": block("qwen3-default", 32, 32, power=True),
    "fp8-block-e8m0": block("llama-tied", 16, 64, power="e8m0"),
    "fp8-experts": block("qwen3_moe-published", 32, 32, apart=True),
    "fp8-latent": block("deepseek_v3-published", 32, 32),
    "fp8-minimax": block("minimax_m2-published", 32, 32, modules_to_not_convert=["gate", "e_score_correction_bias", "lm_head"]),
    "fp8-mimo": block("mimo_v2_flash-published", 32, 32, ignored=("o_proj.weight",), packed_modules_mapping={},
                      ignored_layers=[f"model.layers.{i}.self_attn.o_proj" for i in range(3)]),
    "fp8-experts-stacked": block("qwen3_moe-default", 16, 32, fused=True, power=True),
    "fp8-ct-channel": compressed("llama-tied", "channel", False),
    "fp8-ct-tensor": compressed("qwen3-default", "tensor", True),
    "fp8-modelopt": modelopt("llama-tied"),
    "fp8-deepseek-v4": deepseek_v4,
}

if __name__ == "__main__":
    quantized.main(MAKERS)
