"""Writes checkpoint folders the way published ones look, which transformers 5 itself no longer does: it has other keys."""

import copy
import json
import re

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file


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


# Where mlx-lm puts experts, one tensor per projection: in gemma4, and elsewhere.
SWITCHES = ((r"\.experts\.switch_glu", ".experts"), (r"\.mlp\.switch_mlp", ".mlp.experts"))
# The norms of Qwen 3.5 whose weights are used as 1 + w, and which mlx-lm writes with the 1 added.
SHIFTED = r"(^|\.)(input_layernorm|post_attention_layernorm|[qk]_norm|model\.norm|language_model\.norm)\.weight$"


def to_mlx(config, tensors):
    """A checkpoint as mlx-lm writes it: no towers and no heads that draft, stacked experts; of Qwen 3.5 the axes of
    convolutions the other way round, and other norms."""
    config = {k: v for k, v in config.items() if "qwen3_5" not in config["model_type"] or k != "vision_config"}
    tensors = rename(fuse(tensors), (r"visual\.|vision|audio|^mtp\.", None), (r"^model\.language_model\.", "language_model.model."),
                     *([(r"^lm_head", "language_model.lm_head")] if "text_config" in config else []))
    to = "experts.switch_glu" if "gemma4" in config["model_type"] else "switch_mlp"
    out = {}
    for name, tensor in tensors.items():
        if m := re.fullmatch(r"(.*)experts\.gate_up_proj", name):
            for projection, part in zip(("gate_proj", "up_proj"), tensor.chunk(2, dim=1)):
                out[f"{m[1]}{to}.{projection}.weight"] = part
        elif m := re.fullmatch(r"(.*)experts\.down_proj", name):
            out[f"{m[1]}{to}.down_proj.weight"] = tensor
        elif name.endswith("conv1d.weight"):
            out[name] = tensor.transpose(1, 2)
        elif "qwen3_5" in config["model_type"] and re.search(SHIFTED, name):
            out[name] = (1 + tensor.float()).to(tensor.dtype)
        else:
            out[name] = tensor
    return config, out


def is_mlx(folder):
    path = folder / "model.safetensors"
    if not path.exists():
        return False
    with safe_open(path, "pt") as file:
        return any(re.search(r"\.switch_(glu|mlp)\.", name) for name in file.keys())


def from_mlx(folder, plain):
    """The text model of a folder by mlx-lm, with experts, as transformers reads it, in float32."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    outer, config = config["architectures"][0], config.get("text_config", config)
    config["architectures"] = [outer.replace("ForConditionalGeneration", "ForCausalLM")]
    shifted = "qwen3_5" in config["model_type"] or config["model_type"] == "qwen3_next"
    tensors, banks = {}, {}
    for name, tensor in load_file(folder / "model.safetensors").items():
        name, tensor = name.removeprefix("language_model."), tensor.float()
        for pattern, to in SWITCHES:
            name = re.sub(pattern, to, name)
        if m := re.fullmatch(r"(.*\.experts)\.(gate|up)_proj\.weight", name):
            banks.setdefault(m[1], {})[m[2]] = tensor
            continue
        if shifted and name.endswith("conv1d.weight"):
            tensor = tensor.transpose(1, 2)
        elif shifted and re.search(SHIFTED, name):
            tensor = tensor - 1
        tensors[re.sub(r"(\.experts\.down_proj)\.weight$", r"\1", name)] = tensor
    for name, bank in banks.items():
        tensors[name + ".gate_up_proj"] = torch.cat([bank["gate"], bank["up"]], dim=1)
    write_json(plain / "config.json", config)
    store({n: t.contiguous() for n, t in tensors.items()}, plain / "model.safetensors")


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
