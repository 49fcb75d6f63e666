"""The official packages of three APIs against `ingot serve` with a published model, for `make test-real`: chats, a tool call
with its round trip, and a schema. INGOT_URL is the server and INGOT_MODEL the model, whose answers may be wrong: forms are checked."""

import json
import os
import unittest

import anthropic
import ollama
import openai

URL, MODEL = os.environ["INGOT_URL"], os.environ["INGOT_MODEL"]
QUESTION = [{"role": "user", "content": "Write one line about Paris."}]
WEATHER = [{"role": "user", "content": "What is the weather in Paris?"}]
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 20}}, "required": ["city"], "additionalProperties": False}
FUNCTION = {"name": "get_weather", "description": "Gets the current weather of a city.", "parameters": PARAMETERS}
SCHEMA = {
    "type": "object",
    "properties": {"town": {"type": "string", "maxLength": 20}, "continent": {"enum": ["Africa", "America", "Asia", "Europe"]}},
    "required": ["town", "continent"],
    "additionalProperties": False,
}
GREEDY = {"temperature": 0}


class Case(unittest.TestCase):
    def object(self, text):
        value = json.loads(text)
        self.assertEqual(sorted(value), ["continent", "town"])
        self.assertIn(value["continent"], SCHEMA["properties"]["continent"]["enum"])


class OpenAI(Case):
    def setUp(self):
        self.client = openai.OpenAI(base_url=URL + "/v1", api_key="none", max_retries=0)
        self.addCleanup(self.client.close)

    def test_chat(self):
        whole = self.client.chat.completions.create(model=MODEL, messages=QUESTION, max_tokens=24, **GREEDY)
        self.assertTrue(whole.choices[0].message.content)
        self.assertGreater(whole.usage.prompt_tokens, 5)
        stream = self.client.chat.completions.create(model=MODEL, messages=QUESTION, max_tokens=24, stream=True, **GREEDY)
        self.assertEqual("".join(c.choices[0].delta.content or "" for c in stream if c.choices), whole.choices[0].message.content)

    def test_tool(self):
        tools = [{"type": "function", "function": FUNCTION}]
        message = self.client.chat.completions.create(
            model=MODEL, messages=WEATHER, tools=tools, tool_choice="required", parallel_tool_calls=False, max_tokens=80, **GREEDY
        ).choices[0].message
        self.assertEqual([c.function.name for c in message.tool_calls], ["get_weather"])
        self.assertEqual(list(json.loads(message.tool_calls[0].function.arguments)), ["city"])
        call = {"role": "assistant", "tool_calls": [message.tool_calls[0].model_dump()]}
        result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "Rain, 12 degrees."}
        answer = self.client.chat.completions.create(model=MODEL, messages=[*WEATHER, call, result], max_tokens=24, **GREEDY)
        self.assertTrue(answer.choices[0].message.content)

    def test_schema(self):
        form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True}}
        answer = self.client.chat.completions.create(model=MODEL, messages=QUESTION, response_format=form, max_tokens=80, **GREEDY)
        self.object(answer.choices[0].message.content)


class Ollama(Case):
    def setUp(self):
        self.client = ollama.Client(host=URL)
        self.addCleanup(self.client.close)

    def test_chat(self):
        options = {**GREEDY, "num_predict": 24}
        whole = self.client.chat(MODEL, QUESTION, options=options)
        self.assertTrue(whole.message.content)
        parts = self.client.chat(MODEL, QUESTION, options=options, stream=True)
        self.assertEqual("".join(p.message.content or "" for p in parts), whole.message.content)

    def test_schema(self):
        self.object(self.client.chat(MODEL, QUESTION, format=SCHEMA, options={**GREEDY, "num_predict": 80}).message.content)


class Anthropic(Case):
    def setUp(self):
        self.client = anthropic.Anthropic(base_url=URL, api_key="none", max_retries=0)
        self.addCleanup(self.client.close)

    def test_chat(self):
        whole = self.client.messages.create(model=MODEL, messages=QUESTION, max_tokens=24, extra_body=GREEDY)
        self.assertTrue(whole.content[0].text)
        with self.client.messages.stream(model=MODEL, messages=QUESTION, max_tokens=24, extra_body=GREEDY) as stream:
            self.assertEqual(stream.get_final_message().content[0].text, whole.content[0].text)

    def test_tool(self):
        tool = {"name": FUNCTION["name"], "description": FUNCTION["description"], "input_schema": PARAMETERS}
        choice = {"type": "any", "disable_parallel_tool_use": True}
        answer = self.client.messages.create(model=MODEL, messages=WEATHER, tools=[tool], tool_choice=choice, max_tokens=80, extra_body=GREEDY)
        calls = [b for b in answer.content if b.type == "tool_use"]
        self.assertEqual([c.name for c in calls], ["get_weather"], answer)
        result = {"type": "tool_result", "tool_use_id": calls[0].id, "content": "Rain, 12 degrees."}
        turns = [*WEATHER, {"role": "assistant", "content": [calls[0].model_dump()]}, {"role": "user", "content": [result]}]
        again = self.client.messages.create(model=MODEL, messages=turns, tools=[tool], max_tokens=24, extra_body=GREEDY)
        self.assertTrue(again.content)

    def test_schema(self):
        form = {"format": {"type": "json_schema", "schema": SCHEMA}}
        answer = self.client.messages.create(model=MODEL, messages=QUESTION, max_tokens=80, extra_body={**GREEDY, "output_config": form})
        self.object(answer.content[0].text)


if __name__ == "__main__":
    unittest.main()
