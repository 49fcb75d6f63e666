"""The official packages of three APIs against `ingot serve` with SmolLM2-135M-Instruct, for `make test-real`.

INGOT_URL is the server, INGOT_CHAT_MODEL the model, and INGOT_CALL_MODEL the model with a chat template that shows tools.
"""

import json
import os
import unittest

import anthropic
import ollama
import openai

URL, CHAT, CALLS = os.environ["INGOT_URL"], os.environ["INGOT_CHAT_MODEL"], os.environ["INGOT_CALL_MODEL"]
QUESTION = [{"role": "user", "content": "What is the capital of France?"}]
WEATHER = [{"role": "user", "content": "What is the weather in Paris?"}]
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 20}}, "required": ["city"], "additionalProperties": False}
FUNCTION = {"name": "get_weather", "description": "Gets the current weather of a city.", "parameters": PARAMETERS}
SCHEMA = {
    "type": "object",
    "properties": {"capital": {"type": "string", "maxLength": 20}, "continent": {"enum": ["Africa", "America", "Asia", "Europe"]}},
    "required": ["capital", "continent"],
    "additionalProperties": False,
}
GREEDY = {"temperature": 0}


class Case(unittest.TestCase):
    def object(self, text):
        """Checks the response to QUESTION in the form of SCHEMA."""
        value = json.loads(text)
        self.assertEqual(sorted(value), ["capital", "continent"])
        self.assertIn("Paris", value["capital"])


class OpenAI(Case):
    def setUp(self):
        self.client = openai.OpenAI(base_url=URL + "/v1", api_key="none", max_retries=0)
        self.addCleanup(self.client.close)

    def test_chat(self):
        whole = self.client.chat.completions.create(model=CHAT, messages=QUESTION, max_tokens=40, **GREEDY).choices[0]
        self.assertIn("Paris", whole.message.content)
        self.assertEqual(whole.finish_reason, "stop")
        stream = self.client.chat.completions.create(model=CHAT, messages=QUESTION, max_tokens=40, stream=True, **GREEDY)
        self.assertEqual("".join(c.choices[0].delta.content or "" for c in stream if c.choices), whole.message.content)
        response = self.client.responses.create(model=CHAT, input=QUESTION[0]["content"], max_output_tokens=40, **GREEDY)
        self.assertIn("Paris", response.output_text)

    def test_tool(self):
        message = self.client.chat.completions.create(
            model=CALLS, messages=WEATHER, tools=[{"type": "function", "function": FUNCTION}], tool_choice="required", parallel_tool_calls=False, max_tokens=80, **GREEDY
        ).choices[0].message
        self.assertEqual([c.function.name for c in message.tool_calls], ["get_weather"])
        self.assertIn("Paris", json.loads(message.tool_calls[0].function.arguments)["city"])
        call = {"role": "assistant", "tool_calls": [message.tool_calls[0].model_dump()]}
        result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "Rain, 12 degrees."}
        answer = self.client.chat.completions.create(model=CALLS, messages=[*WEATHER, call, result], max_tokens=40, **GREEDY)
        self.assertTrue(answer.choices[0].message.content)

    def test_schema(self):
        form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True}}
        answer = self.client.chat.completions.create(model=CHAT, messages=QUESTION, response_format=form, max_tokens=80, **GREEDY)
        self.object(answer.choices[0].message.content)


class Ollama(Case):
    def setUp(self):
        self.client = ollama.Client(host=URL)
        self.addCleanup(self.client.close)

    def test_chat(self):
        options = {**GREEDY, "num_predict": 40}
        whole = self.client.chat(CHAT, QUESTION, options=options)
        self.assertIn("Paris", whole.message.content)
        self.assertEqual((whole.model, whole.done_reason), (CHAT, "stop"))
        parts = self.client.chat(CHAT, QUESTION, options=options, stream=True)
        self.assertEqual("".join(p.message.content or "" for p in parts), whole.message.content)

    def test_tool(self):
        self.assertIn("tools", self.client.show(CALLS).capabilities)
        call = {  # a model this small rarely calls by itself, and this API cannot require a call
            "type": "object",
            "properties": {"name": {"const": "get_weather"}, "parameters": PARAMETERS},
            "required": ["name", "parameters"],
            "additionalProperties": False,
        }
        tools = [{"type": "function", "function": FUNCTION}]
        answer = self.client.chat(CALLS, WEATHER, tools=tools, format=call, options={**GREEDY, "num_predict": 80})
        self.assertEqual([c.function.name for c in answer.message.tool_calls], ["get_weather"])
        self.assertIn("Paris", answer.message.tool_calls[0].function.arguments["city"])

    def test_schema(self):
        self.object(self.client.chat(CHAT, QUESTION, format=SCHEMA, options={**GREEDY, "num_predict": 80}).message.content)


class Anthropic(Case):
    def setUp(self):
        self.client = anthropic.Anthropic(base_url=URL, api_key="none", max_retries=0)
        self.addCleanup(self.client.close)

    def test_chat(self):
        whole = self.client.messages.create(model=CHAT, messages=QUESTION, max_tokens=40, extra_body=GREEDY)
        self.assertIn("Paris", whole.content[0].text)
        self.assertEqual(whole.stop_reason, "end_turn")
        with self.client.messages.stream(model=CHAT, messages=QUESTION, max_tokens=40, extra_body=GREEDY) as stream:
            self.assertEqual(stream.get_final_message().content[0].text, whole.content[0].text)

    def test_tool(self):
        tool = {"name": FUNCTION["name"], "description": FUNCTION["description"], "input_schema": PARAMETERS}
        answer = self.client.messages.create(model=CALLS, messages=WEATHER, tools=[tool], tool_choice={"type": "any"}, max_tokens=80, extra_body=GREEDY)
        calls = [b for b in answer.content if b.type == "tool_use"]
        self.assertEqual([c.name for c in calls][:1], ["get_weather"], answer)
        self.assertIn("Paris", calls[0].input["city"])

    def test_schema(self):
        form = {"format": {"type": "json_schema", "schema": SCHEMA}}
        answer = self.client.messages.create(model=CHAT, messages=QUESTION, max_tokens=80, extra_body={**GREEDY, "output_config": form})
        self.object(answer.content[0].text)


if __name__ == "__main__":
    unittest.main()
