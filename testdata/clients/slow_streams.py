"""The official clients against a server that sends keep-alives before and in each response: TestSlowStreams in server.

The models say: the thinking "hm", the text "It is so." in two pieces with a pause, and a call of the tool f.
"""

import os
import unittest

import anthropic
import ollama
import openai

URL = os.environ["INGOT_URL"]
MODEL = "talk"
USER = [{"role": "user", "content": "Hi"}]
SCHEMA = {"type": "object", "properties": {"x": {"type": "integer"}}}
F = {"name": "f", "description": "d", "parameters": SCHEMA}


def joined(parts):
    return "".join(p or "" for p in parts)


class OpenAI(unittest.TestCase):
    def setUp(self):
        self.client = openai.OpenAI(base_url=URL + "/v1", api_key="any", max_retries=0)

    def test_chat(self):
        request = {"model": MODEL, "messages": USER, "tools": [{"type": "function", "function": F}]}
        deltas = [c.choices[0].delta for c in self.client.chat.completions.create(stream=True, **request)]
        kinds = [[k for k in ("reasoning", "content", "tool_calls") if getattr(d, k, None)] for d in deltas]
        self.assertEqual([k[0] for k in kinds if k], ["reasoning", "content", "content", "tool_calls"])
        self.assertTrue(all(len(k) < 2 for k in kinds), kinds)
        self.assertEqual(joined(d.content for d in deltas), "It is so.")
        with self.client.chat.completions.stream(**request) as stream:
            message = stream.get_final_completion().choices[0].message
        self.assertEqual((message.content, message.tool_calls[0].function.arguments), ("It is so.", '{"x":1}'))

    def test_completion(self):
        stream = self.client.completions.create(model="plain", prompt="Hi", stream=True)
        self.assertIn(" is so.", joined(c.choices[0].text for c in stream))

    def test_response(self):
        request = {"model": MODEL, "input": "Hi", "tools": [{"type": "function", "strict": False, **F}]}
        events = list(self.client.responses.create(stream=True, **request))
        self.assertEqual([e.sequence_number for e in events], list(range(len(events))))
        self.assertEqual(joined(e.delta for e in events if e.type == "response.output_text.delta"), "It is so.")
        self.assertGreater(sum(e.type == "response.in_progress" for e in events), 1)
        with self.client.responses.stream(**request) as stream:
            final = stream.get_final_response()
        self.assertEqual((final.output_text, final.output[-1].arguments), ("It is so.", '{"x":1}'))


class Anthropic(unittest.TestCase):
    def test_message(self):
        client = anthropic.Anthropic(base_url=URL, api_key="any", max_retries=0)
        request = {
            "model": MODEL,
            "messages": USER,
            "max_tokens": 2000,
            "thinking": {"type": "enabled", "budget_tokens": 1024},
            "tools": [{"name": "f", "input_schema": SCHEMA}],
        }
        kinds = [e.type for e in client.messages.create(stream=True, **request)]
        self.assertEqual((kinds[0], kinds[-1]), ("message_start", "message_stop"))
        with client.messages.stream(**request) as stream:
            final = stream.get_final_message()
        self.assertEqual([b.type for b in final.content], ["thinking", "text", "tool_use"])
        self.assertEqual((final.content[1].text, final.content[2].input), ("It is so.", {"x": 1}))


class Ollama(unittest.TestCase):
    def setUp(self):
        self.client = ollama.Client(host=URL)

    def test_chat(self):
        parts = list(self.client.chat(MODEL, USER, tools=[{"type": "function", "function": F}], stream=True))
        self.assertEqual([p.done for p in parts], [False] * (len(parts) - 1) + [True])
        messages = [p.message for p in parts]
        kinds = [[k for k in ("thinking", "content", "tool_calls") if getattr(m, k)] for m in messages]
        self.assertEqual([k[0] for k in kinds if k], ["thinking", "content", "content", "tool_calls"])
        self.assertTrue(all(len(k) < 2 for k in kinds), kinds)
        self.assertGreater(kinds.count([]), 3)
        self.assertEqual(joined(m.content for m in messages), "It is so.")

    def test_generate(self):
        parts = list(self.client.generate("plain", "Hi", stream=True))
        self.assertIn(" is so.", joined(p.response for p in parts))
        self.assertTrue(parts[-1].done)


if __name__ == "__main__":
    unittest.main()
