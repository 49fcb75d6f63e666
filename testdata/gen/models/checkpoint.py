"""Writes checkpoint folders as published ones look. transformers 5 itself saves other keys."""

import copy
import json
import re

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def published(config, dtype):
    """Returns config.json as transformers 4 wrote it: rope_theta, rope_scaling, torch_dtype, sorted keys."""
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
    """Returns a configuration with the keys of transformers 4; it must have one set of rope parameters."""
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
    """Applies to each name the first rule (pattern, replacement) that matches; None as replacement drops the tensor."""
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
    """Fuses separate experts into one gate_up_proj (an expert's gate first) and one down_proj."""
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
    """Splits fused experts into one tensor per expert and projection."""
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


# mlx-lm's names for experts, one tensor per projection: gemma4's, and the others'.
SWITCHES = ((r"\.experts\.switch_glu", ".experts"), (r"\.mlp\.switch_mlp", ".mlp.experts"))
# The norms of Qwen 3.5 that scale by 1 + w. mlx-lm stores 1 + w.
SHIFTED = r"(^|\.)(input_layernorm|post_attention_layernorm|[qk]_norm|model\.norm|language_model\.norm)\.weight$"


def to_mlx(config, tensors):
    """Returns a checkpoint as mlx-lm writes it: without towers and MTP heads, with stacked experts.

    For Qwen 3.5 it also transposes convolutions and adds 1 to norms.
    """
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
    """Writes the text model of a folder from mlx-lm as transformers reads it, in float32. It must have experts."""
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


def lacks_unused(folder):
    """Reports whether a folder is one of LongCat Flash as published: without weights of experts that return their input."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    unused = f"model.layers.0.mlp.experts.{config.get('n_routed_experts')}.gate_proj.weight"
    return config["model_type"] == "longcat_flash" and unused not in load_file(folder / "model.safetensors")


def add_unused(folder, whole):
    """Writes such a folder with the unused weights, without which transformers 5.23 does not load it."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    tensors, n = load_file(folder / "model.safetensors"), config["n_routed_experts"]
    for i in range(config["num_layers"]):
        for part in ("gate_proj", "up_proj"):
            name = f"model.layers.{i}.mlp.experts.%d.{part}.weight"
            for e in range(n, n + config["zero_expert_num"]):
                tensors[name % e] = torch.zeros_like(tensors[name % 0])
    write_json(whole / "config.json", config)
    store(tensors, whole / "model.safetensors")


# Multimodal models whose towers transformers loads with further packages: the classes of their text models.
NESTED = {"Gemma3nForConditionalGeneration": "Gemma3nForCausalLM"}


def nested(config, tensors, kind, model_type):
    """Returns the checkpoint of a text model as the one of the multimodal model around it, without towers."""
    inner = {k: v for k, v in config.items() if k not in ("architectures", "transformers_version")}
    outer = {"architectures": [kind], "model_type": model_type, "text_config": inner, "dtype": "bfloat16"}
    return outer, rename(tensors, (r"^model\.", "model.language_model."))


def text_alone(folder, plain):
    """Writes the text model of a multimodal folder as transformers reads it alone."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    inner = {**config["text_config"], "architectures": [NESTED[config["architectures"][0]]]}
    tensors = {n: t for n, t in load_file(folder / "model.safetensors").items() if n.startswith("model.language_model.")}
    write_json(plain / "config.json", inner)
    store(rename(tensors, (r"^model\.language_model\.", "model.")), plain / "model.safetensors")


def store(tensors, path):
    save_file(tensors, path, metadata={"format": "pt"})
    path.chmod(0o644)


def save(folder, config, state, dtype, shards=1):
    """Writes config.json and the weights in dtype, and an index if there are several shards."""
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
