"""Writes arch/testdata/keys.json: what transformers reads of a configuration, for each model type, and what it makes of
the configurations in arch/testdata/tables.

"types" has for each type the keys that its code reads, with their defaults: attributes of configurations in the code of
the model, and attributes and arguments in the code of the configuration. Code of vision and audio towers is left out.
"tables" has for each configuration, and for the same without each of its keys, what the class of the configuration makes
of it, as changes of the configuration; null removes a key there.
"""
import ast
import dataclasses
import inspect
import json
import os
import pathlib
import re

os.environ["TRANSFORMERS_OFFLINE"] = "1"

import transformers as tf
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.utils import logging

REPO = pathlib.Path(__file__).resolve().parents[3]
OUT = REPO / "arch" / "testdata" / "keys.json"
HOME = pathlib.Path(tf.__file__).parent
logging.set_verbosity(logging.CRITICAL)

# What code that models share reads, if the code of the model uses it: masks and ropes.
SHARED = {"create_causal_mask": ["is_causal"], "create_sliding_window_causal_mask": ["is_causal", "sliding_window"],
          "create_chunked_causal_mask": ["attention_chunk_size"],
          "ROPE_INIT_FUNCTIONS": ["head_dim", "rope_parameters", "rope_theta", "rope_scaling", "partial_rotary_factor",
                                  "max_position_embeddings", "original_max_position_embeddings"]}
TOWERS = re.compile("Vision|Audio|Image|Video|Speech|Visual|Pixtral|Siglip")
# Of training, of the library and of generation.
BASE = {f.name for f in dataclasses.fields(tf.PreTrainedConfig)} | {
    "model_type", "name_or_path", "text_config", "vision_config", "audio_config", "pad_token_id", "initializer_range", "use_cache",
    "tokenizer_class", "torch_dtype", "num_labels", "output_attentions"}


def types():
    """Returns the names of ingot's model types that are in transformers."""
    names = set()
    for file in (REPO / "arch" / "types").glob("*.go"):
        for row in re.findall(r"Register\(arch\.Arch\{(.*?)\n\t\}, ", file.read_text(), re.S):
            names |= set(re.findall(r'ModelType:\s*"([^"]+)"', row))
            names |= {n for a in re.findall(r"Aliases:\s*\[\]string\{(.*?)\}", row, re.S) for n in re.findall(r'"([^"]+)"', a)}
    return sorted(n for n in names | {"mistral"} if n in CONFIG_MAPPING)


def is_config(node):
    """Reports whether an expression is the configuration of a model or of its text model."""
    match node:
        case ast.Name(id="config" | "text_config"):
            return True
        case ast.Attribute(attr="config" | "text_config", value=ast.Name(id="self")):
            return True
        case ast.Attribute(attr="text_config", value=inner):
            return is_config(inner)
        case ast.Call(func=ast.Attribute(attr="get_text_config", value=inner)):
            return is_config(inner)
    return False


def attributes(tree, is_of):
    found = set()
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=value, attr=key, ctx=ast.Load()) if is_of(value):
                found.add(key)
            case ast.Call(func=ast.Name(id="getattr" | "hasattr"), args=[value, ast.Constant(value=str(key)), *_]) if is_of(value):
                found.add(key)
    return found


def arguments(tree):
    """Returns the keys that a class of configurations reads without having them as attributes."""
    return {node.args[0].value for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name) and node.func.value.id == "kwargs" and node.func.attr in ("get", "pop")
            and node.args and isinstance(node.args[0], ast.Constant)}


def is_tower(node):
    """Reports whether a class or function belongs to a tower, by its name or by the class of its configuration."""
    annotations = [ast.unparse(a.annotation) for f in ast.walk(node) if isinstance(f, ast.FunctionDef) and f.name == "__init__"
                   for a in f.args.args if a.arg == "config" and a.annotation]
    return bool(TOWERS.search(node.name) or any(TOWERS.search(a) for a in annotations)
                or re.search("For(Sequence|Token)Classification|ForQuestionAnswering|DoubleHeads", node.name))


def read_by(path):
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not is_tower(node):
            found |= attributes(node, is_config)
    return found


def text_class(cls):
    spec = cls.sub_configs_defaults.get("text_config")
    if spec is None:
        return cls
    return spec.config_class if spec.config_class is not tf.AutoConfig else CONFIG_MAPPING[spec.model_type]


def defaults(cls):
    out = {}
    for f in dataclasses.fields(cls):
        value = f.default if f.default is not dataclasses.MISSING else (
            f.default_factory() if f.default_factory is not dataclasses.MISSING else None)
        out[f.name] = value if isinstance(value, (bool, int, float, str, list, dict)) else None
    return out


def is_computed(cls, key, value):
    """Reports whether a class of configurations computes an attribute from others, whatever a file says."""
    other = {bool: not value, int: 7, float: 7.0}.get(type(value), ["full_attention"] if "types" in key else 7)
    try:
        config = cls(**{key: other})
        return key not in ("rope_theta", "tie_word_embeddings") and getattr(config, key) not in (other, [other])
    except Exception:
        return isinstance(getattr(cls, key, None), property)


def keys(cls):
    """Returns the keys that are read of a configuration of the class with their defaults, and keys with other names."""
    text = text_class(cls)
    module = pathlib.Path(inspect.getfile(cls))
    model = module.with_name(module.name.replace("configuration", "modeling"))
    read = {"tie_word_embeddings"}
    if model.exists():
        read |= read_by(model)
        read |= {k for name, list in SHARED.items() if name in model.read_text() for k in list}
    known, names = defaults(cls) | defaults(text), cls.attribute_map | text.attribute_map
    popped = set()
    for c in {cls, text}:
        tree = ast.parse(inspect.getsource(c))
        popped |= arguments(tree)
        read |= attributes(tree, lambda n: isinstance(n, ast.Name) and n.id == "self") & set(known)
    wanted = {k for k in read - BASE if not k.startswith("_") and not callable(getattr(text, k, None))}
    wanted |= {there for here, there in names.items() if here in wanted}
    wanted = {k for k in wanted if not is_computed(text, k, known.get(k))} | popped | {"per_layer_config"}
    wanted -= {here for here, there in names.items() if there not in wanted}
    names = {here: there for here, there in names.items() if there in wanted}
    return {"keys": {k: known.get(k) for k in sorted(wanted - set(names))}, "names": names}


def plain(value):
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, (list, tuple)) else value


IDLE = BASE - {"text_config"} | {"id2label", "label2id", "auto_map"}
# How transformers 4 had the ropes, which a configuration has no more when it is saved.
OLD = ["rope_scaling", "rope_theta", "partial_rotary_factor", "sliding_window_pattern", "rope_local_base_freq"]


def changes(of, to):
    """Returns the changes that make one configuration of another; "-" removes a key."""
    out = {k: "-" for k in OLD if k in of and k not in to}
    for k, v in to.items():
        if k in IDLE or k.startswith("_") or k in of and of[k] == v:
            continue
        if k == "text_config" and isinstance(of.get(k), dict):
            out |= {f"{k}.{inner}": value for inner, value in changes(of[k], v).items()}
        else:
            out[k] = v
    return out


def made(config):
    """Returns what the class of a configuration makes of it, or None if it refuses it."""
    try:
        config = json.loads(json.dumps(config))
        return json.loads(json.dumps(plain(CONFIG_MAPPING[config["model_type"]](**config).to_dict())))
    except Exception:
        return None


def without(config):
    """Yields each key and the configuration without it. Keys of the text model have a prefix."""
    for key in config:
        if key == "text_config":
            for inner, rest in without(config[key]):
                yield f"text_config.{inner}", {**config, key: rest}
        elif key in ("full_attention", "sliding_attention") and isinstance(config[key], dict):
            for inner, rest in without(config[key]):
                yield f"{key}.{inner}", {**config, key: rest}
        elif key not in IDLE and not key.startswith("_") and key not in ("architectures", "quantization_config"):
            yield key, {k: v for k, v in config.items() if k != key}
            if key in ("rope_parameters", "rope_scaling") and isinstance(config[key], dict):
                for inner, rest in without(config[key]):
                    yield f"{key}.{inner}", {**config, key: rest}


SMALL = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 4}


def configs():
    """Returns configurations by name: those of the tables, and a small one of each type that has no table."""
    out, small = {}, {}
    for file in sorted(REPO.glob("arch/testdata/tables/*.json")):
        out[file.stem] = json.loads(file.read_text())["config"]
    for name in types():
        if not any(c.get("model_type") == name for c in out.values()):
            nested = "text_config" in CONFIG_MAPPING[name].sub_configs_defaults
            whole = made({"model_type": name, **({"text_config": SMALL} if nested else SMALL)}) or {}
            small[name] = {k: v for k, v in whole.items() if k not in IDLE or k in ("text_config", "model_type")}
            if nested and whole:
                small[name]["text_config"] = {k: v for k, v in whole["text_config"].items() if k not in IDLE or k == "model_type"}
    return out | small, {k: v for k, v in small.items() if v}


def tables(all):
    out = {}
    for name, config in all.items():
        if config.get("model_type") not in CONFIG_MAPPING or "auto_map" in config or (whole := made(config)) is None:
            continue
        out[name] = {"": changes(config, whole)}
        read = set(keys(CONFIG_MAPPING[config["model_type"]])["keys"]) | {"bos_token_id", "eos_token_id"}
        for key, rest in without(config):
            path = key.split(".")
            if ("rope_" in key or path[-1] in read) and (other := made(rest)) is not None:
                out[name][key] = changes(whole, other)
                if not re.search("rope_.*[.]", key):
                    value = (other["text_config"] if len(path) > 1 else other).get(path[-1], "-")
                    out[name][key].setdefault(key, value)
    return out


def main():
    lines = [json.dumps(n) + ": " + json.dumps(keys(CONFIG_MAPPING[n])) for n in types()]
    all, small = configs()
    rows = []
    for name, table in tables(all).items():
        own = ",\n  ".join(json.dumps(k) + ": " + json.dumps(v, sort_keys=True) for k, v in table.items())
        rows.append(json.dumps(name) + ": {\n  " + own + "}")
    OUT.write_text('{"types": {\n' + ",\n".join(lines) + '},\n"configs": ' + json.dumps(small, sort_keys=True) + ',\n"tables": {\n' + ",\n".join(rows) + "}}\n")
    print(f"{len(lines)} types, {len(rows)} configurations")


main()
