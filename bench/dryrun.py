"""Times `create --dry-run` of the largest published checkpoint: dryrun.py INGOT [ROUNDS].

The folder has the tensors of Kimi K2 Thinking, 61 layers of 384 experts in int4, as sparse files of 594 GB with real
headers. Prints the median time and the largest memory, and writes bench/results/dry-run.json.
"""

import json
import os
import resource
import statistics
import struct
import subprocess
import sys
import tempfile
import time

HIDDEN, EXPERT, EXPERTS, LAYERS, HEADS, VOCAB = 7168, 2048, 384, 61, 64, 163840
BYTES = {"I32": 4, "BF16": 2, "F32": 4}
CONFIG = {
    "architectures": ["DeepseekV3ForCausalLM"], "model_type": "kimi_k2", "vocab_size": VOCAB, "hidden_size": HIDDEN,
    "intermediate_size": 18432, "moe_intermediate_size": EXPERT, "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS, "num_key_value_heads": HEADS, "n_routed_experts": EXPERTS, "n_shared_experts": 1,
    "num_experts_per_tok": 8, "n_group": 1, "topk_group": 1, "topk_method": "noaux_tc", "norm_topk_prob": True,
    "scoring_func": "sigmoid", "routed_scaling_factor": 2.827, "first_k_dense_replace": 1, "moe_layer_freq": 1,
    "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
    "hidden_act": "silu", "max_position_embeddings": 262144, "rms_norm_eps": 1e-5, "rope_theta": 50000.0,
    "rope_scaling": {"type": "yarn", "factor": 64.0, "original_max_position_embeddings": 4096, "beta_fast": 32.0,
                     "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0},
    "tie_word_embeddings": False, "attention_bias": False, "torch_dtype": "bfloat16",
    "quantization_config": {
        "quant_method": "compressed-tensors", "format": "pack-quantized", "ignore": ["lm_head"],
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": {
            "num_bits": 4, "type": "int", "strategy": "group", "group_size": 32, "symmetric": True}}}},
}


def mlp(prefix, size):
    return [(prefix + name, shape) for name, shape in
            (("gate_proj", (size, HIDDEN)), ("up_proj", (size, HIDDEN)), ("down_proj", (HIDDEN, size)))]


def layer(i):
    p = f"model.layers.{i}."
    norms = ("input_layernorm", HIDDEN), ("post_attention_layernorm", HIDDEN), ("self_attn.q_a_layernorm", 1536), \
        ("self_attn.kv_a_layernorm", 512)
    for name, size in norms:
        yield p + name + ".weight", "BF16", (size,)
    for name, shape in (("q_a_proj", (1536, HIDDEN)), ("q_b_proj", (HEADS * 192, 1536)), ("o_proj", (HIDDEN, HEADS * 128)),
                        ("kv_a_proj_with_mqa", (576, HIDDEN)), ("kv_b_proj", (HEADS * 256, 512))):
        yield p + "self_attn." + name + ".weight", "BF16", shape
    dense = mlp(p + "mlp.", 18432) if i == 0 else mlp(p + "mlp.shared_experts.", EXPERT)
    for name, shape in dense:
        yield name + ".weight", "BF16", shape
    if i == 0:
        return
    yield p + "mlp.gate.weight", "BF16", (EXPERTS, HIDDEN)
    yield p + "mlp.gate.e_score_correction_bias", "F32", (EXPERTS,)
    for e in range(EXPERTS):
        for name, (rows, columns) in mlp(f"{p}mlp.experts.{e}.", EXPERT):
            yield name + ".weight_packed", "I32", (rows, columns // 8)
            yield name + ".weight_scale", "BF16", (rows, columns // 32)
            yield name + ".weight_shape", "I32", (2,)


def write(path, tensors):
    header, at = {}, 0
    for name, dtype, shape in tensors:
        size = BYTES[dtype]
        for n in shape:
            size *= n
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        f.truncate(8 + len(text) + at)
    return header


def make(folder):
    shards = [layer(i) for i in range(LAYERS)]
    shards.append([("model.embed_tokens.weight", "BF16", (VOCAB, HIDDEN)), ("model.norm.weight", "BF16", (HIDDEN,)),
                   ("lm_head.weight", "BF16", (VOCAB, HIDDEN))])
    index = {}
    for i, tensors in enumerate(shards):
        name = f"model-{i + 1:05}-of-{len(shards):06}.safetensors"
        index.update(dict.fromkeys(write(os.path.join(folder, name), tensors), name))
    for name, value in (("model.safetensors.index.json", {"weight_map": index}), ("config.json", CONFIG)):
        with open(os.path.join(folder, name), "w") as f:
            json.dump(value, f)
    return len(index)


def main(ingot, rounds):
    with tempfile.TemporaryDirectory() as folder:
        count = make(folder)
        seconds = []
        for _ in range(rounds):
            start = time.monotonic()
            subprocess.run([ingot, "create", "m", folder, "--dry-run"], check=True, stdout=subprocess.DEVNULL)
            seconds.append(time.monotonic() - start)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
    result = {"tensors": count, "seconds": round(statistics.median(seconds), 2), "mebibytes": peak}
    print(json.dumps(result))
    results = os.path.join(os.path.dirname(__file__), "results")
    os.makedirs(results, exist_ok=True)
    with open(os.path.join(results, "dry-run.json"), "w") as f:
        json.dump(result, f)
        f.write("\n")


main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5)
