"""Writes prompt/testdata/deepseek.json: conversations and the prompts of DeepSeek V3.2 and V4, whose publisher describes
them in a program and not in a template.

https://huggingface.co/deepseek-ai/DeepSeek-V4-Flash/blob/main/encoding/README.md
https://huggingface.co/deepseek-ai/DeepSeek-V3.2/blob/main/encoding/encoding_dsv32.py

This is an implementation of its own: it makes a list of turns of a conversation, and joins them. {tools} and {effort} stand
for the long texts that the models are trained with; the test has their digests.
"""

import json
from pathlib import Path

OUT = Path(__file__).resolve().parents[3] / "chat" / "prompt" / "testdata" / "deepseek.json"
BEGIN, END = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"
USER, ASSISTANT = "<｜User｜>", "<｜Assistant｜>"

def compact(value):
    return json.dumps(value, ensure_ascii=False)


def element(name, attributes, body):
    words = "".join(f' {key}="{value}"' for key, value in attributes.items())
    return f"<｜DSML｜{name}{words}>{body}</｜DSML｜{name}>"


def call_block(tag, calls):
    parts = []
    for call in calls:
        arguments = call["function"]["arguments"]
        try:
            arguments = json.loads(arguments)
        except ValueError:
            arguments = {"arguments": arguments}
        lines = [
            element("parameter", {"name": k, "string": str(isinstance(v, str)).lower()}, v if isinstance(v, str) else compact(v))
            for k, v in arguments.items()
        ]
        parts.append(element("invoke", {"name": call["function"]["name"]}, "\n" + "\n".join(lines) + "\n"))
    return "\n\n" + element(tag, {}, "\n" + "\n".join(parts) + "\n")


def turns(messages):
    """Groups what follows each other without a message of the model: lists of messages."""
    groups = []
    for m in messages:
        inputs = m["role"] in ("user", "tool")
        if inputs and groups and groups[-1][0]["role"] in ("user", "tool"):
            groups[-1].append(m)
        else:
            groups.append([m])
    return groups


def in_call_order(group, calls):
    order = {c["id"]: i for i, c in enumerate(calls) if c.get("id")}
    results = [m for m in group if m["role"] == "tool"]
    if order:
        results.sort(key=lambda m: order.get(m.get("tool_call_id"), 0))
    rest = iter(results)
    return [next(rest) if m["role"] == "tool" else m for m in group]


def v4(messages, tools, think, effort):
    out = [BEGIN]
    if think and effort == "max":
        out.append("{effort}")
    groups, calls = turns(messages), []
    if tools and (not groups or groups[0][0]["role"] != "system"):
        groups.insert(0, [{"role": "system", "content": ""}])
    last = max((i for i, g in enumerate(groups) if g[0]["role"] in ("user", "tool")), default=-1)
    for i, group in enumerate(groups):
        first = group[0]
        if first["role"] == "system":
            out.append(first["content"] + ("\n\n{tools}" if tools and i == 0 else ""))
        elif first["role"] == "assistant":
            kept = think and (tools or i > last)
            out += [first.get("reasoning_content", "") + "</think>" if kept else "", first.get("content") or ""]
            if first.get("tool_calls"):
                calls = first["tool_calls"]
                out.append(call_block("tool_calls", calls))
            out.append(END)
        else:
            texts = [f"<tool_result>{m['content']}</tool_result>" if m["role"] == "tool" else m["content"]
                     for m in in_call_order(group, calls)]
            thinks = think and (tools or i == last)
            out += [USER, "\n\n".join(texts), ASSISTANT, "<think>" if thinks else "</think>"]
    return "".join(out)


def v32(messages, tools, think, effort):
    out = [BEGIN]
    if tools and messages[0]["role"] != "system":
        messages = [{"role": "system", "content": ""}, *messages]
    last = max((i for i, m in enumerate(messages) if m["role"] == "user"), default=-1)
    for i, m in enumerate(messages):
        start = "<think>" if think and i >= last else "</think>"
        match m["role"]:
            case "system":
                out.append(m["content"] + ("\n\n{tools}" if tools and i == 0 else ""))
            case "user":
                out += [USER, m["content"], ASSISTANT, start]
            case "assistant":
                if think and i > last:
                    out.append(m.get("reasoning_content", "") + "</think>")
                out.append(m.get("content") or "")
                if m.get("tool_calls"):
                    out.append(call_block("function_calls", m["tool_calls"]))
                out.append(END)
            case "tool":
                if messages[i - 1]["role"] != "tool":
                    out.append("\n\n<function_results>")
                out.append(f"\n<result>{m['content']}</result>")
                if i + 1 == len(messages) or messages[i + 1]["role"] != "tool":
                    out.append(f"\n</function_results>\n\n{start}")
    return "".join(out)


def call(name, arguments, id=None):
    function = {"name": name, "arguments": arguments if isinstance(arguments, str) else compact(arguments)}
    return {"type": "function", "function": function} | ({"id": id} if id else {})


def result(text, id=None):
    return {"role": "tool", "content": text} | ({"tool_call_id": id} if id else {})


SYSTEM = {"role": "system", "content": "Be brief."}
ASK = {"role": "user", "content": "Wie ist das Wetter in Köln und 北京?"}
SAID = {"role": "assistant", "reasoning_content": "Easy.\n\nYes.", "content": "Sunny."}
CALLS = {"role": "assistant", "reasoning_content": "Two places.", "content": "Let me look.", "tool_calls": [
    call("weather", {"place": "Köln", "days": 2, "units": {"wind": "m/s"}, "precise": True}, "a"),
    call("weather", {"place": "北京", "note": "\"<b>\" & more\nlines"}, "b")]}
TOOLS = [
    {"type": "function", "function": {"name": "weather", "description": "The weather, in °C", "parameters": {
        "type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}}},
    {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}},
]
CONVERSATIONS = {
    "one": ([ASK], None),
    "system": ([SYSTEM, ASK], None),
    "turns": ([SYSTEM, ASK, SAID, {"role": "user", "content": "And tomorrow?"}], None),
    "long": ([ASK, SAID, ASK, {"role": "assistant", "content": "Rain."}, ASK], None),
    "tools": ([SYSTEM, ASK], TOOLS),
    "tools without system": ([ASK], TOOLS),
    "calls": ([SYSTEM, ASK, CALLS, result("12", "a"), result("20", "b")], TOOLS),
    "calls, answered": ([ASK, CALLS, result("12", "a"), result("20", "b"), SAID, ASK], TOOLS),
    "call without arguments": ([ASK, {"role": "assistant", "content": None, "tool_calls": [call("now", {})]}, result("noon")],
                               TOOLS),
}
# For V4 alone: V3.2 has results in the order of calls, and text after them is another turn.
MORE = {
    "results in another order": ([ASK, CALLS, result("20", "b"), result("12", "a"), ASK], TOOLS),
    "two questions": ([ASK, {"role": "user", "content": "Quick!"}], None),
    "arguments that are no JSON": ([ASK, {"role": "assistant", "content": "", "tool_calls": [call("now", "soon")]}, result("noon")],
                                   TOOLS),
}


def main():
    cases = []
    for form, write, conversations in (("deepseek3.2", v32, CONVERSATIONS), ("deepseek4", v4, CONVERSATIONS | MORE)):
        for name, (messages, tools) in conversations.items():
            for think, effort in ((True, None), (False, None)) + (((True, "max"),) if form == "deepseek4" and name == "one" else ()):
                cases.append({"format": form, "name": name, "messages": messages, "tools": tools, "think": think, "effort": effort,
                              "schemas": "\n".join(compact(t["function"]) for t in tools or []),
                              "prompt": write(messages, tools, think, effort)})
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(cases, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
