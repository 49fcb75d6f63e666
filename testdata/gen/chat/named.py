"""Writes chat/testdata/named.json: which of a model's named templates transformers renders, for folders of many shapes.

A case has the files of a folder, and the results of requests: without tools, with an empty list of them, with a tool, and
with a template's name. A result is {"ok": text}, or {"err": name of the exception}; one that loading raised is "load".
"""

import json
import tempfile
from pathlib import Path

from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

from reference import write

OUT = Path(__file__).resolve().parents[3] / "chat" / "testdata" / "named.json"
CONFIG, JINJA, FOLDER = "tokenizer_config.json", "chat_template.jinja", "additional_chat_templates/"
TOOL = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}}}


def text(mark):
    return mark + ":{{ messages[0].content }}:{{ 'none' if tools is none else tools | length }}"


def entry(name, mark=None, **more):
    return {"name": name, "template": text(mark or name), **more}


def config(value, **more):
    return {CONFIG: json.dumps({"chat_template": value, **more}, ensure_ascii=False)}


D, T, R = entry("default"), entry("tool_use"), entry("rag")
CASES = {
    "text": config(text("one")),
    "text with other keys after it": config(text("one"), model_max_length=10, eos_token=None),
    "null": config(None),
    "absent": {CONFIG: "{}"},
    "list": config([D, T]),
    "list in the other order": config([T, D]),
    "list of three": config([R, T, D]),
    "list of one default": config([D]),
    "list without tool_use": config([D, R]),
    "list without default": config([T, R]),
    "list of tool_use alone": config([T]),
    "list of another name alone": config([entry("chat")]),
    "empty list": config([]),
    "same name twice": config([entry("default", "first"), T, entry("default", "second")]),
    "tool_use twice": config([entry("tool_use", "first"), D, entry("tool_use", "second")]),
    "elements with more keys": config([entry("default", version=3, tags=["a"], x=None), entry("tool_use", nested={"name": "y"})]),
    "odd names": config([D, entry(""), entry("a b"), entry("Tool_Use"), entry("é✓"), entry("a/../b"), entry("tool_use ")]),
    "name in capitals": config([entry("Default"), T]),
    "element without a name": config([{"template": "x"}, D]),
    "element without a template": config([{"name": "default"}]),
    "Name for name": config([{"Name": "default", "template": "x"}]),
    "list of texts": config(["x", "y"]),
    "object": config({"default": text("default"), "tool_use": text("tool_use")}),
    "object without default": config({"rag": text("rag"), "tool_use": text("tool_use")}),
    "object of one": config({"default": text("default")}),
    "object with a key twice": {CONFIG: '{"chat_template": {"default": "first", "tool_use": "t", "default": "second"}}'},
    "file": {JINJA: text("file"), CONFIG: "{}"},
    "file over a text": {JINJA: text("file"), **config(text("config"))},
    "file over a list": {JINJA: text("file"), **config([D, T])},
    "folder": {JINJA: text("file"), FOLDER + "tool_use.jinja": text("folder"), CONFIG: "{}"},
    "folder over a list": {JINJA: text("file"), FOLDER + "rag.jinja": text("folder"), **config([D, T])},
    "folder with other files": {
        JINJA: text("file"), FOLDER + "tool_use.jinja": text("folder"), FOLDER + "README.md": "# x", FOLDER + "tool_use.txt": "x",
        FOLDER + "tool_use.jinja.bak": "x", FOLDER + "tool_use.JINJA": "x", CONFIG: "{}",
    },
    "folder with a folder": {JINJA: text("file"), FOLDER + "old/tool_use.jinja": "x", CONFIG: "{}"},
    "folder with odd names": {
        JINJA: text("file"), FOLDER + "a b.jinja": text("a b"), FOLDER + "x.y.jinja": text("x.y"), FOLDER + "é.jinja": text("é"),
        CONFIG: "{}",
    },
    "folder with a default": {JINJA: text("file"), FOLDER + "default.jinja": text("folder"), CONFIG: "{}"},
    "folder alone": {FOLDER + "default.jinja": text("folder"), FOLDER + "tool_use.jinja": text("tools"), CONFIG: "{}"},
    "folder without default": {FOLDER + "tool_use.jinja": text("tools"), FOLDER + "rag.jinja": text("rag"), CONFIG: "{}"},
    "folder beside a text": {FOLDER + "tool_use.jinja": text("tools"), **config(text("config"))},
}
NAMES = ["default", "tool_use", "rag", "a b", "", "é✓", "x.y", "tool_use ", "Tool_Use", "old/tool_use", "chat"]


def result(call):
    try:
        return {"ok": call()}
    except Exception as e:
        return {"err": type(e).__name__}


def results(files):
    with tempfile.TemporaryDirectory() as at:
        for name, content in files.items():
            (Path(at) / name).parent.mkdir(exist_ok=True, parents=True)
            (Path(at) / name).write_text(content, encoding="utf-8")
        Tokenizer(models.WordLevel({"x": 0}, unk_token="x")).save(str(Path(at) / "tokenizer.json"))
        try:
            t = PreTrainedTokenizerFast.from_pretrained(at)
        except Exception as e:
            return {"load": type(e).__name__}
    messages = [{"role": "user", "content": "hi"}]
    out = {}
    for key, tools in ("none", None), ("empty", []), ("tools", [TOOL]):
        out[key] = result(lambda: t.apply_chat_template(messages, tools=tools, tokenize=False))
    if isinstance(t.chat_template, dict):
        for name in NAMES:
            if name in t.chat_template:
                out["named " + name] = result(lambda: t.apply_chat_template(messages, chat_template=name, tokenize=False))
    return out


def main():
    OUT.parent.mkdir(exist_ok=True)
    write(OUT, [{"name": name, "files": files, "results": results(files)} for name, files in CASES.items()])


if __name__ == "__main__":
    main()
