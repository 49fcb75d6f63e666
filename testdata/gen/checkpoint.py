"""Writes checkpoint folders the way published ones look, which transformers 5 itself no longer does: it has other keys."""

import json

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
