"""Writes checkpoint folders the way published ones look, which transformers 5 itself no longer does: it has other keys."""

import copy
import json
import re

import torch
from safetensors.torch import save_file


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def published(config, dtype):
    """config.json as checkpoints of transformers 4 have it: rope_theta, rope_scaling, torch_dtype, keys sorted."""
    value = {
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "hidden_act": "silu",
        "initializer_range": 0.02,
        "mlp_bias": False,
        "model_type": "llama",
        "pretraining_tp": 1,
        "tie_word_embeddings": False,
        "torch_dtype": dtype,
        "transformers_version": "4.43.0",
        "use_cache": True,
    }
    value.update(config)
    rope = dict(value.pop("rope_parameters"))
    value["rope_theta"] = rope.pop("rope_theta")
    value["rope_scaling"] = None if rope["rope_type"] == "default" else rope
    return dict(sorted(value.items()))


def four(config):
    """Keys of transformers 4, in a configuration that has one set of rope parameters."""
    config = copy.deepcopy(config)
    config["torch_dtype"] = config.pop("dtype", "bfloat16")
    config["transformers_version"] = "4.57.0"
    if rope := config.pop("rope_parameters", None):
        config["rope_theta"] = rope.pop("rope_theta")
        config["rope_scaling"] = None if rope["rope_type"] == "default" else rope
    if "num_local_experts" in config:
        config["num_experts"] = config.pop("num_local_experts")
    return config


def rename(tensors, *rules):
    """Applies the first rule (pattern, replacement) that fits to each name; a rule without replacement drops it."""
    out = {}
    for name, tensor in tensors.items():
        for pattern, new in rules:
            if re.search(pattern, name):
                name = None if new is None else re.sub(pattern, new, name)
                break
        if name is not None:
            out[name] = tensor
    return out


def fuse(tensors, base=r"mlp\.experts"):
    """Experts of one tensor each as gate_up_proj (of each expert the gate first) and down_proj of all of them."""
    out, banks = {}, {}
    for name, tensor in tensors.items():
        if m := re.fullmatch(rf"(.*{base})\.(\d+)\.(\w+)\.weight", name):
            banks.setdefault(m[1], {})[int(m[2]), m[3]] = tensor
        else:
            out[name] = tensor
    for prefix, bank in banks.items():
        count = 1 + max(e for e, _ in bank)
        out[prefix + ".gate_up_proj"] = torch.stack(
            [torch.cat([bank[e, "gate_proj"], bank[e, "up_proj"]]) for e in range(count)])
        out[prefix + ".down_proj"] = torch.stack([bank[e, "down_proj"] for e in range(count)])
    return out


def apart(tensors, base=r"mlp\.experts"):
    """The other way round: one tensor per expert and projection."""
    out = {}
    for name, tensor in tensors.items():
        if m := re.fullmatch(rf"(.*{base})\.gate_up_proj", name):
            for e, both in enumerate(tensor):
                for projection, part in zip(("gate_proj", "up_proj"), both.chunk(2)):
                    out[f"{m[1]}.{e}.{projection}.weight"] = part
        elif m := re.fullmatch(rf"(.*{base})\.down_proj", name):
            for e, part in enumerate(tensor):
                out[f"{m[1]}.{e}.down_proj.weight"] = part
        else:
            out[name] = tensor
    return out


def stack(tensors, base=r"mlp\.experts", to="mlp.switch_mlp"):
    """Fused experts as one tensor per projection, as mlx-lm writes them."""
    out = {}
    for name, tensor in tensors.items():
        if m := re.fullmatch(rf"(.*){base}\.gate_up_proj", name):
            for projection, part in zip(("gate_proj", "up_proj"), tensor.chunk(2, dim=1)):
                out[f"{m[1]}{to}.{projection}.weight"] = part
        elif m := re.fullmatch(rf"(.*){base}\.down_proj", name):
            out[f"{m[1]}{to}.down_proj.weight"] = tensor
        else:
            out[name] = tensor
    return out


def store(tensors, path):
    save_file(tensors, path, metadata={"format": "pt"})
    path.chmod(0o644)


def save(folder, config, state, dtype, shards=1):
    """Writes config.json and the weights in dtype; with shards > 1 also model.safetensors.index.json."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("model*.safetensors*"):
        old.unlink()
    write_json(folder / "config.json", config)
    names = sorted(n for n in state if not (config.get("tie_word_embeddings") and n == "lm_head.weight"))
    tensors = {n: state[n].detach().to(dtype).contiguous().clone() for n in names}
    if shards == 1:
        store(tensors, folder / "model.safetensors")
        return
    total, done, weight_map = sum(t.nbytes for t in tensors.values()), 0, {}
    groups = [{} for _ in range(shards)]
    for name in names:
        shard = min(shards - 1, done * shards // total)
        groups[shard][name] = tensors[name]
        weight_map[name] = f"model-{shard + 1:05d}-of-{shards:05d}.safetensors"
        done += tensors[name].nbytes
    for i, group in enumerate(groups):
        store(group, folder / f"model-{i + 1:05d}-of-{shards:05d}.safetensors")
    write_json(folder / "model.safetensors.index.json", {"metadata": {"total_size": total}, "weight_map": weight_map})
