"""Writes testdata/sources/nvfp4-experts*: mixtures of experts in nvfp4, as ModelOpt and compressed-tensors publish them:
one tensor for each expert's matrix, or one for all experts. Experts are dequantized, so that the goldens have their elements
in bfloat16. Other linear layers keep codes.
"""

import numpy as np
import torch

import quantized  # first: finds the modules of ../models
from quantized import plain
from quantized_fp8 import write
from quantized_packed import nvfp4

import checkpoint


def matrices(tensor, style):
    """Quantizes matrices [experts, out, in], each with a scale of its own. Returns codes, scales, factors and elements."""
    parts = [nvfp4(m.float().numpy(), style) for m in tensor]
    join = lambda key: torch.stack([p[key] for p, _ in parts])
    return join("weight"), join("weight_scale"), join("weight_scale_2"), torch.tensor(np.stack([v for _, v in parts]))


def apart(model, style, ends=("proj.weight",), prefix=""):
    """One tensor for each expert's matrix."""

    def make(folder):
        config, tensors = plain(model)

        def one(name, tensor):
            parts, value = nvfp4(tensor.float().numpy(), style)
            value = torch.tensor(value)
            base = name.removesuffix("weight")
            return {base + key: part for key, part in parts.items()}, value.bfloat16() if ".experts." in name else value

        config_of = {
            "modelopt": {"quant_method": "modelopt", "quant_algo": "NVFP4"},
            "compressed": {"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized", "config_groups": {
                "group_0": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}}}},
        }
        write(folder, config, tensors, config_of[style], one, lambda n, t: n.endswith(ends) and t.shape[-1] % 16 == 0)

    return make


def together(model, turned, factors, fused=False):
    """One tensor for all experts: the plain one has matrices [in, out] if turned. factors is their number per tensor ("one")
    or per expert (1 or 2).
    """

    def make(folder):
        config, tensors = plain(model)
        if fused:
            tensors = checkpoint.fuse(tensors)

        def one(name, tensor):
            rows = tensor.mT if turned else tensor
            if factors == "one":
                codes, scales, whole, value = matrices(rows.flatten(0, 1)[None], "modelopt")
                codes, scales, value = codes.unflatten(1, rows.shape[:2])[0], scales.unflatten(1, rows.shape[:2])[0], value.unflatten(1, rows.shape[:2])[0]
                whole = whole[0]
            elif factors == 2 and "gate_up" in name:
                codes, scales, whole, value = matrices(rows.unflatten(1, (2, -1)).flatten(0, 1), "modelopt")
                codes, scales, value = (x.reshape(len(rows), -1, x.shape[-1]) for x in (codes, scales, value))
                whole = whole.reshape(len(rows), 2, 1)
            else:
                codes, scales, whole, value = matrices(rows, "modelopt")
            if turned:
                codes, scales, value = codes.mT, scales.mT, value.mT
            return {name: codes, name + "_weight_scale": scales, name + "_weight_scale_2": whole, name + "_input_scale": torch.tensor(0.01)}, value.bfloat16()

        write(folder, config, tensors, {"quant_method": "modelopt", "quant_algo": "NVFP4"}, one,
              lambda n, t: n.endswith((".experts.gate_up_proj", ".experts.down_proj")))

    return make


def makers():
    return {
        "nvfp4-experts": apart("qwen3_moe-published", "modelopt"),
        "nvfp4-experts-packed": apart("mixtral-published", "compressed", ("proj.weight", ".w1.weight", ".w2.weight", ".w3.weight")),
        "nvfp4-experts-llama4": together("llama4-published", True, "one"),
        "nvfp4-experts-gpt_oss": together("gpt_oss-saved", True, 1),
        "nvfp4-experts-halves": together("qwen3_moe-default", False, 2, fused=True),
    }


if __name__ == "__main__":
    quantized.main(makers())
