"""Writes testdata/sources/gptq*, awq, packed-*, int8 and nvfp4*: tiny Llamas packed as AutoGPTQ, AutoAWQ,
compressed-tensors and ModelOpt publish them, and their goldens: the logits of transformers in float32 from the
dequantized weights.

    quantized_packed.py [NAME...]   writes the folders
    quantized_packed.py --check     compares the packings with the package compressed-tensors 0.20.0

The packings follow the documentation of their formats.
"""

import argparse
import json
import shutil
import tempfile
from pathlib import Path

from quantized import SOURCES as FOLDERS  # first: finds the modules of ../models
import reference  # before transformers: keeps it offline

import numpy as np
import torch
from safetensors.numpy import save_file as save_numpy
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig, LlamaForCausalLM

import checkpoint
import tiny
from tiny import VOCAB

BASE = dict(
    vocab_size=VOCAB, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=128, rms_norm_eps=1e-5, bos_token_id=VOCAB - 2,
    eos_token_id=VOCAB - 1, rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
)
AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)


def grid(weight, bits, order, symmetric, dtype):
    """Returns codes [out, in], scales and zero points [out, groups] of a weight, and its dequantized values."""
    top, groups = 2**bits - 1, int(order.max()) + 1
    codes = np.zeros(weight.shape, np.int64)
    scales, zeros = np.zeros((len(weight), groups), np.float32), np.zeros((len(weight), groups), np.int64)
    for g in range(groups):
        part = weight[:, order == g]
        if symmetric:
            scale, zero = np.abs(part).max(1) / (top // 2), np.full(len(part), 2 ** (bits - 1))
        else:
            low, high = np.minimum(part.min(1), 0), np.maximum(part.max(1), 0)
            scale = (high - low) / top
            zero = np.clip(np.round(-low / scale), 1, top).astype(np.int64)
        scale = torch.tensor(scale).to(dtype).float().numpy()
        scales[:, g], zeros[:, g] = scale, zero
        codes[:, order == g] = np.clip(np.round(part / scale[:, None]) + zero[:, None], 0, top)
    value = (codes - zeros[:, order]).astype(np.float32) * scales[:, order]
    return codes, scales, zeros, value


def stream(codes, bits):
    """Packs rows of codes into 32-bit words, the first code in the lowest bits. Codes may cross words."""
    place = ((codes[..., None] >> np.arange(bits)) & 1).reshape(len(codes), -1, 32).astype(np.uint64)
    return (place << np.arange(32, dtype=np.uint64)).sum(-1).astype(np.uint32).view(np.int32)


def int32(a):
    return torch.tensor(np.ascontiguousarray(a))


def gptq(codes, scales, zeros, order, bits, dtype, version):
    columns = np.arange(codes.shape[1])
    return {
        "qweight": int32(stream(codes, bits).T),
        "qzeros": int32(stream((zeros - (1 if version == "gptq" else 0)).T, bits)),
        "scales": torch.tensor(scales.T.copy()).to(dtype),
        "g_idx": int32(order[columns].astype(np.int32)),
    }


def awq(codes, scales, zeros, dtype):
    def pack(a):  # [lines, rows of the weight]
        eight = a.reshape(len(a), -1, 8)[:, :, AWQ_ORDER].astype(np.uint64)
        return (eight << (4 * np.arange(8, dtype=np.uint64))).sum(-1).astype(np.uint32).view(np.int32)

    return {"qweight": int32(pack(codes.T)), "qzeros": int32(pack(zeros.T)), "scales": torch.tensor(scales.T.copy()).to(dtype)}


def packed(codes, scales, zeros, order, bits, dtype, symmetric, moved):
    out = {
        "weight_packed": int32(stream(codes, bits)),
        "weight_scale": torch.tensor(scales).to(dtype),
        "weight_shape": torch.tensor(codes.shape, dtype=torch.int64),
    }
    if not symmetric:
        out["weight_zero_point"] = int32(stream(zeros.T, bits).T)
    if moved:
        out["weight_g_idx"] = int32(order.astype(np.int32))
    return out


def nvfp4(weight, style):
    """Returns two codes per byte, an E4M3 scale for each 16, and a global scale."""
    whole = torch.tensor(448.0 * 6.0 / float(np.abs(weight).max()), dtype=torch.float32)
    blocks = weight.reshape(len(weight), -1, 16)
    scales = (torch.tensor(np.abs(blocks).max(-1) / 6) * whole).to(torch.float8_e4m3fn)
    if style == "modelopt":
        whole = 1 / whole
        real = scales.float() * whole
    else:
        real = scales.float() / whole
    quotient = np.abs(blocks / real.numpy()[:, :, None])
    codes = np.abs(quotient[..., None] - E2M1).argmin(-1)
    sign = (blocks < 0) & (codes > 0)
    value = np.where(sign, -1, 1) * E2M1[codes] * real.numpy()[:, :, None]
    codes = (codes + 8 * sign).reshape(len(weight), -1, 2).astype(np.uint8)
    data = torch.tensor(codes[:, :, 0] | codes[:, :, 1] << 4)
    value = value.reshape(weight.shape).astype(np.float32)
    if style == "modelopt":
        return {"weight": data, "weight_scale": scales, "weight_scale_2": whole, "input_scale": torch.tensor(0.01)}, value
    return {"weight_packed": data, "weight_scale": scales, "weight_global_scale": whole.reshape(1),
            "input_global_scale": torch.tensor([100.0])}, value


def order_of(columns, group, moved, seed):
    order = np.arange(columns) // (group if group > 0 else columns)
    return np.random.RandomState(seed).permutation(order) if moved else order


def compressed(format, **weights):
    return {
        "quant_method": "compressed-tensors", "format": format, "quantization_status": "compressed", "ignore": ["lm_head"],
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights, "input_activations": None}},
    }


# name -> (type of the plain tensors, quantization_config, how a weight is packed)
SOURCES = {
    "gptq": ("float16", dict(quant_method="gptq", bits=4, group_size=32, desc_act=False, sym=False, checkpoint_format="gptq"),
                    dict(kind="gptq", bits=4, group=32)),
    "gptq-v2": ("bfloat16", dict(quant_method="gptq", bits=4, group_size=64, desc_act=False, sym=True, checkpoint_format="gptq_v2"),
                       dict(kind="gptq", bits=4, group=64, symmetric=True)),
    "gptq-desc-act": ("float16", dict(quant_method="gptq", bits=4, group_size=32, desc_act=True, sym=False),
                             dict(kind="gptq", bits=4, group=32, moved=True)),
    "gptq-8bit": ("float16", dict(quant_method="gptq", bits=8, group_size=-1, desc_act=False, sym=True),
                         dict(kind="gptq", bits=8, group=-1, symmetric=True)),
    "gptq-3bit": ("float16", dict(quant_method="gptq", bits=3, group_size=64, desc_act=False, sym=True),
                         dict(kind="gptq", bits=3, group=64, symmetric=True)),
    "gptq-auto-round": ("float16", dict(quant_method="auto-round", packing_format="auto_round", bits=4, group_size=32, sym=False,
                                        data_type="int", autoround_version="0.16.1", block_name_to_quantize="model.layers"),
                                   dict(kind="gptq", bits=4, group=32, version="gptq_v2", index=False)),
    "gptq-auto-round-mixed": ("float16", dict(quant_method="auto-round", packing_format="auto_round", bits=4, group_size=32, sym=False,
                                              extra_config={".*down_proj.*": {"bits": 8}, ".*o_proj.*": {"bits": 5}, ".*k_proj.*": {"bits": 6, "group_size": 64}}),
                                         dict(kind="gptq", bits=4, group=32, version="gptq_v2", index=False,
                                              layers={"down_proj": dict(bits=8), "o_proj": dict(bits=5), "k_proj": dict(bits=6, group=64)})),
    "awq": ("float16", dict(quant_method="awq", bits=4, group_size=64, zero_point=True, version="gemm", modules_to_not_convert=None),
                   dict(kind="awq", bits=4, group=64)),
    "packed-int4": ("bfloat16", compressed("pack-quantized", num_bits=4, type="int", symmetric=True, strategy="group", group_size=32),
                           dict(kind="packed", bits=4, group=32, symmetric=True)),
    "packed-int4-zeros": ("bfloat16", compressed("pack-quantized", num_bits=4, type="int", symmetric=False, strategy="group", group_size=64),
                                 dict(kind="packed", bits=4, group=64)),
    "packed-int8": ("bfloat16", compressed("pack-quantized", num_bits=8, type="int", symmetric=True, strategy="channel", group_size=None),
                           dict(kind="packed", bits=8, group=-1, symmetric=True)),
    "packed-actorder": ("bfloat16", compressed("pack-quantized", num_bits=4, type="int", symmetric=True, strategy="group", group_size=32,
                                                      actorder="group"),
                               dict(kind="packed", bits=4, group=32, symmetric=True, moved=True)),
    "int8": ("bfloat16", compressed("int-quantized", num_bits=8, type="int", symmetric=True, strategy="channel", group_size=None),
                    dict(kind="int", bits=8, group=-1, symmetric=True)),
    "nvfp4": ("bfloat16", compressed("nvfp4-pack-quantized", num_bits=4, type="float", symmetric=True, strategy="tensor_group", group_size=16),
                     dict(kind="nvfp4", style="compressed")),
    "nvfp4-modelopt": ("bfloat16", dict(quant_method="modelopt", quant_algo="NVFP4", producer={"name": "modelopt", "version": "0.33.0"},
                                               config_groups={"group_0": {"weights": {"num_bits": 4, "type": "float", "group_size": 16}, "targets": ["Linear"]}},
                                               ignore=["lm_head"]),
                              dict(kind="nvfp4", style="modelopt")),
}


def pack(weight, dtype, how, seed):
    if how["kind"] == "nvfp4":
        return nvfp4(weight, how["style"])
    moved, symmetric = how.get("moved", False), how.get("symmetric", False)
    order = order_of(weight.shape[1], how["group"], moved, seed)
    codes, scales, zeros, value = grid(weight, how["bits"], order, symmetric, dtype)
    if how["kind"] == "gptq":
        parts = gptq(codes, scales, zeros, order, how["bits"], dtype, how["version"])
        if not how.get("index", True):
            del parts["g_idx"]
        return parts, value
    if how["kind"] == "awq":
        return awq(codes, scales, zeros, dtype), value
    if how["kind"] == "int":
        return {"weight": torch.tensor((codes - 128).astype(np.int8)), "weight_scale": torch.tensor(scales).to(dtype)}, value
    return packed(codes, scales, zeros, order, how["bits"], dtype, symmetric, moved), value


def attempt(name, seed):
    dtype_name, quantization, how = SOURCES[name]
    how = {"version": quantization.get("checkpoint_format", "gptq"), **how}
    dtype, folder = getattr(torch, dtype_name), FOLDERS / name
    shutil.rmtree(folder, ignore_errors=True)
    stored, plain = {}, {}
    for i, (n, t) in enumerate(LlamaForCausalLM(LlamaConfig(**BASE)).state_dict().items()):
        value = tiny.draw(seed, n, tuple(t.shape), False).to(dtype)
        if ".layers." not in n or not n.endswith("_proj.weight"):
            stored[n], plain[n] = value, value.float()
            continue
        own = next((own for layer, own in how.get("layers", {}).items() if layer in n), {})
        parts, dequantized = pack(value.float().numpy(), dtype, {**how, **own}, i)
        plain[n] = torch.tensor(dequantized)
        for part, tensor in parts.items():
            stored[f"{n.removesuffix('.weight')}.{part}"] = tensor.contiguous()
    config = checkpoint.published(BASE, dtype_name)
    folder.mkdir(parents=True)
    checkpoint.write_json(folder / "config.json", dict(config, quantization_config=quantization))
    save_file(stored, folder / "model.safetensors", {"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)
    with tempfile.TemporaryDirectory() as temp:
        # The tokens of the golden depend on the folder's name.
        whole = Path(temp) / name
        whole.mkdir()
        checkpoint.write_json(whole / "config.json", dict(config, torch_dtype="float32"))
        save_file(plain, whole / "model.safetensors", {"format": "pt"})
        golden = reference.compute(whole)
    tiny.judge(golden)
    save_numpy(golden, folder / "reference.safetensors")
    (folder / "reference.safetensors").chmod(0o644)


def check():
    """Compares the packings with those of compressed-tensors' own functions."""
    from compressed_tensors.compressors.pack_quantized.helpers import pack_to_int32, unpack_from_int32

    for name, (_, quantization, how) in SOURCES.items():
        if how["kind"] != "packed":
            continue
        tensors, seen = load_file(FOLDERS / name / "model.safetensors"), 0
        for key, words in tensors.items():
            layer, _, part = key.rpartition(".")
            if part not in ("weight_packed", "weight_zero_point"):
                continue
            along = 1 if part == "weight_packed" else 0
            shape = tensors[layer + ".weight_shape"].tolist()
            if not along:
                shape[1] = words.shape[1]
            codes = unpack_from_int32(words, how["bits"], torch.Size(shape), along)
            assert torch.equal(pack_to_int32(codes, how["bits"], along), words), key
            ours = (np.asarray(words if along else words.T).view(np.uint32)[..., None] >> np.arange(0, 32, how["bits"], dtype=np.uint32)) % 2 ** how["bits"]
            ours = ours.reshape(len(ours), -1).astype(np.int64) - 2 ** (how["bits"] - 1)
            assert np.array_equal(ours if along else ours.T, codes.numpy()), key
            seen += 1
        print(name, seen, "tensors as compressed-tensors packs them")
    x = torch.randn(8, 64, generator=torch.Generator().manual_seed(1))
    from compressed_tensors.compressors.nvfp4.helpers import unpack_fp4_from_uint8

    parts, value = nvfp4(x.numpy(), "compressed")
    codes = unpack_fp4_from_uint8(parts["weight_packed"], 8, 64, dtype=torch.float32)
    real = parts["weight_scale"].float() / parts["weight_global_scale"]
    assert torch.equal(codes * real.repeat_interleave(16, 1), torch.tensor(value))
    print("nvfp4 as compressed-tensors packs it")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="checkpoints, default all")
    parser.add_argument("--check", action="store_true", help="compare with the package compressed-tensors, write nothing")
    args = parser.parse_args()
    if args.check:
        return check()
    reference.setup()
    for name in args.names or SOURCES:
        tiny.seeds(name, lambda seed, name=name: attempt(name, seed))
        print(name, sum(p.stat().st_size for p in (FOLDERS / name).iterdir()))


if __name__ == "__main__":
    main()
