"""The calls that the examples of Ollama's own Python package make, through the functions of its module."""

import asyncio
import os
import unittest

from clients import CALL_MODEL, CHAT_MODEL, MODEL, PICTURES, STORY, URL, VISION_MODEL

os.environ["OLLAMA_HOST"] = URL  # which the package reads when it is imported

import ollama  # noqa: E402
from pydantic import BaseModel  # noqa: E402

SHORT = {"temperature": 0, "num_predict": 8}
QUESTION = [{"role": "user", "content": STORY}]


def add_two_numbers(a: int, b: int) -> int:
    """
    Add two numbers

    Args:
      a (int): The first number
      b (int): The second number

    Returns:
      int: The sum of the two numbers
    """
    return a + b


SUBTRACT = {
    "type": "function",
    "function": {
        "name": "subtract_two_numbers",
        "description": "Subtract two numbers",
        "parameters": {
            "type": "object",
            "required": ["a", "b"],
            "properties": {"a": {"type": "integer", "description": "The first number"}, "b": {"type": "integer"}},
        },
    },
}


class Friend(BaseModel):
    name: str
    age: int
    is_available: bool


class Friends(BaseModel):
    friends: list[Friend]


class Calls(unittest.TestCase):
    def test_answers(self):
        whole = ollama.chat(CHAT_MODEL, messages=QUESTION, options=SHORT)["message"]["content"]
        parts = ollama.chat(CHAT_MODEL, messages=QUESTION, options=SHORT, stream=True)
        self.assertEqual("".join(part["message"]["content"] for part in parts), whole)
        whole = ollama.generate(MODEL, STORY, options=SHORT)["response"]
        parts = ollama.generate(MODEL, STORY, options=SHORT, stream=True)
        self.assertEqual("".join(part["response"] for part in parts), whole)

        async def both():
            client = ollama.AsyncClient()
            chat = await client.chat(CHAT_MODEL, messages=QUESTION, options=SHORT)
            return chat["message"]["content"], (await client.generate(MODEL, STORY, options=SHORT))["response"]

        self.assertTrue(all(asyncio.run(both())))

    def test_history_that_outgrows_the_context(self):
        messages = []
        for _ in range(8):
            messages.append({"role": "user", "content": "And then? " + "Tell me more. " * 20})
            response = ollama.chat(CHAT_MODEL, messages=messages, options={**SHORT, "num_ctx": 200})
            self.assertLess(response.prompt_eval_count, 200)
            messages.append({"role": "assistant", "content": response.message.content})

    def test_tools(self):
        number = {"type": "integer", "minimum": 0, "maximum": 9}
        two = {"type": "object", "properties": {"a": number, "b": number}, "required": ["a", "b"], "additionalProperties": False}
        called = {  # a model this small calls nothing by itself
            "type": "object",
            "properties": {"name": {"enum": ["add_two_numbers", "subtract_two_numbers"]}, "parameters": two},
            "required": ["name", "parameters"],
            "additionalProperties": False,
        }
        messages = list(QUESTION)
        tools = [add_two_numbers, SUBTRACT]
        response = ollama.chat(CALL_MODEL, messages=messages, tools=tools, format=called, options={"temperature": 0, "num_predict": 80})
        messages.append(response.message)
        for tool in response.message.tool_calls:
            self.assertEqual(set(tool.function.arguments), {"a", "b"})
            messages.append({"role": "tool", "content": "7", "tool_name": tool.function.name})
        self.assertEqual(len(messages), 3)
        self.assertTrue(ollama.chat(CALL_MODEL, messages=messages, options=SHORT).message.content)

    def test_values(self):
        options = {"temperature": 0, "num_predict": 200}
        response = ollama.chat(CHAT_MODEL, messages=QUESTION, format=Friends.model_json_schema(), options=options)
        Friends.model_validate_json(response.message.content)
        for response in (
            ollama.chat(CHAT_MODEL, messages=QUESTION, logprobs=True, top_logprobs=3, options=SHORT),
            ollama.generate(MODEL, STORY, logprobs=True, top_logprobs=3, options=SHORT),
        ):
            self.assertEqual(len(response.get("logprobs", [])), 8)
            for entry in response["logprobs"]:
                self.assertLessEqual(entry["logprob"], 0)
                self.assertEqual(len([t["token"] for t in entry["top_logprobs"]]), 3)

    def test_thinking(self):
        for level in (True, "low", "medium", "high"):
            self.assertTrue(ollama.chat(CHAT_MODEL, messages=QUESTION, think=level, options=SHORT).message.thinking)
        self.assertTrue(ollama.generate(CHAT_MODEL, STORY, think=True, options=SHORT).thinking)

    def test_fill_in_middle(self):
        template = "{{ if .Suffix }}{{ .Prompt }} ... {{ .Suffix }}{{ else }}{{ .Prompt }}{{ end }}"
        self.assertEqual(ollama.create(model="filler", from_=MODEL, template=template, stream=False).status, "success")
        self.addCleanup(ollama.delete, "filler")
        self.assertIn("insert", ollama.show("filler").capabilities)
        stop = {**SHORT, "top_p": 0.9, "stop": ["<EOT>"]}
        self.assertTrue(ollama.generate(model="filler", prompt=STORY, suffix="the end", options=stop)["response"])

    def test_pictures(self):
        picture = PICTURES / "shapes.png"
        for image in (str(picture), picture, picture.read_bytes()):
            messages = [{"role": "user", "content": "What is in this image?", "images": [image]}]
            self.assertTrue(ollama.chat(VISION_MODEL, messages=messages, options=SHORT).done)
        parts = list(ollama.generate(VISION_MODEL, "explain this:", images=[picture.read_bytes()], options=SHORT, stream=True))
        self.assertTrue(parts[-1].done)

    def test_models(self):
        for model in ollama.list().models:
            self.assertGreater(model.size.real, 0)
            self.assertEqual(model.details.format, "safetensors")
        response = ollama.show(MODEL)
        for field in ("modified_at", "modelfile", "details", "modelinfo", "parameters", "capabilities"):
            self.assertIsNotNone(getattr(response, field), field)
        self.assertEqual({p["status"] for p in ollama.pull(MODEL, stream=True)}, {"pulling manifest", "success"})
        ollama.chat(MODEL, messages=QUESTION, options=SHORT)
        loaded = next(m for m in ollama.ps().models if m.model == MODEL)
        self.assertEqual((loaded.context_length, loaded.size_vram), (512, 0))
        self.assertGreater(loaded.size, 0)
        self.assertEqual(len(ollama.embed(model=MODEL, input="Hello, world!")["embeddings"]), 1)
        self.assertEqual(ollama.create(model="my-assistant", from_=MODEL.upper(), system="You are mario.", stream=False).status, "success")
        self.assertEqual(ollama.delete("My-Assistant").status, "success")


if __name__ == "__main__":
    unittest.main()
