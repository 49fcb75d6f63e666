"""OpenAI's own Python package against `ingot serve`."""

import asyncio
import base64
import json
import unittest

import openai
from clients import CHAT_MODEL, MODEL, PICTURES, STORY, URL, VISION_MODEL, get, idle, wait
from pydantic import BaseModel


class Pet(BaseModel):
    name: str
    kind: str
    age: int


class Add(BaseModel):
    """Adds two numbers."""

    a: int
    b: int


def user(text):
    return [{"role": "user", "content": text}]


def picture(name):
    return "data:image/png;base64," + base64.b64encode((PICTURES / name).read_bytes()).decode()


TOOLS = [openai.pydantic_function_tool(Add, name="add"), {"type": "function", "function": {"name": "stop", "parameters": {"type": "object", "properties": {}}}}]


class Case(unittest.TestCase):
    def setUp(self):
        self.client = openai.OpenAI(base_url=URL + "/v1", api_key="none", max_retries=0)
        self.addCleanup(self.client.close)

    def refused(self, kind, words, do, **more):
        """Checks that a call is refused, and gives the error."""
        with self.assertRaises(kind) as caught:
            do(**more)
        self.assertIn(words, caught.exception.message)
        return caught.exception


class Chat(Case):
    def chat(self, model=CHAT_MODEL, messages=None, **more):
        return self.client.chat.completions.create(model=model, messages=messages or user(STORY), **{"temperature": 0, "max_tokens": 12, **more})

    def test_chat(self):
        whole = self.chat(messages=[{"role": "developer", "content": "Be kind."}, *user(STORY)])
        self.assertEqual((whole.object, whole.model, len(whole.choices)), ("chat.completion", CHAT_MODEL, 1))
        choice = whole.choices[0]
        self.assertEqual((choice.message.role, choice.finish_reason, choice.index), ("assistant", "length", 0))
        self.assertTrue(choice.message.content)
        self.assertEqual((whole.usage.completion_tokens, whole.usage.total_tokens), (12, whole.usage.prompt_tokens + 12))
        again = self.chat(messages=[{"role": "system", "content": [{"type": "text", "text": "Be kind."}]}, *user(STORY)], max_tokens=None, max_completion_tokens=12)
        self.assertEqual(again.choices[0].message.content, choice.message.content)
        self.assertGreater(again.usage.prompt_tokens_details.cached_tokens, 0)

    def test_cache_key(self):
        for more in ({"prompt_cache_key": "k"}, {"prompt_cache_key": "k", "extra_body": {"prompt_cache_retention": "24h"}}):
            answer = self.chat(messages=user("Of pins and needles."), **more)
            again = self.chat(messages=user("Of pins and needles."), **more)
            self.assertEqual(again.choices[0].message.content, answer.choices[0].message.content)
            self.assertGreater(again.usage.prompt_tokens_details.cached_tokens, 0)

    def test_stream(self):
        whole = self.chat(model=MODEL)
        chunks = list(self.chat(model=MODEL, stream=True, stream_options={"include_usage": True}))
        self.assertEqual("".join(c.choices[0].delta.content or "" for c in chunks[:-1]), whole.choices[0].message.content)
        self.assertEqual((chunks[-1].choices, chunks[-1].usage.completion_tokens), ([], 12))
        self.assertEqual([c.choices[0].finish_reason for c in chunks[:-1]], [None] * (len(chunks) - 2) + ["length"])
        self.assertGreater(len(chunks), 4)
        text = whole.choices[0].message.content
        stop = text.split()[2]
        with self.client.chat.completions.stream(model=MODEL, messages=user(STORY), temperature=0, max_tokens=12, stop=stop) as stream:
            self.assertEqual(stream.get_final_completion().choices[0].message.content, text.split(stop)[0])

    def test_sampling(self):
        once = self.chat(temperature=1.5, seed=7).choices[0].message.content
        self.assertEqual(self.chat(temperature=1.5, seed=7).choices[0].message.content, once)
        several = self.chat(temperature=1.5, seed=7, n=3)
        self.assertEqual([c.index for c in several.choices], [0, 1, 2])
        self.assertEqual(several.choices[0].message.content, once)
        self.assertEqual(len({c.message.content for c in several.choices}), 3)
        self.assertEqual(several.usage.completion_tokens, 36)
        text = self.chat(model=MODEL).choices[0].message.content
        stop = text.split()[2]
        cut = self.chat(model=MODEL, stop=[stop]).choices[0]
        self.assertEqual((cut.message.content, cut.finish_reason), (text.split(stop)[0], "stop"))
        first = self.chat(model=MODEL, logprobs=True, top_logprobs=2).choices[0].logprobs.content
        self.assertEqual("".join(p.token for p in first), text)
        self.assertTrue(all(len(p.top_logprobs) == 2 and p.logprob <= 0 and p.bytes for p in first))
        self.assertNotEqual(self.chat(model=MODEL, logit_bias={"300": 100}).choices[0].message.content, text)

    def test_structured(self):
        answer = self.client.chat.completions.parse(model=CHAT_MODEL, messages=user("A pet."), response_format=Pet, temperature=0, max_tokens=100)
        self.assertIsInstance(answer.choices[0].message.parsed, Pet)
        answer = self.chat(response_format={"type": "json_object"}, max_tokens=60)
        self.assertIsInstance(json.loads(answer.choices[0].message.content), dict)

    def test_tools(self):
        for choice in ("required", {"type": "function", "function": {"name": "add"}}):
            messages = user("2 and 3?")
            answer = self.client.chat.completions.parse(
                model=CHAT_MODEL, messages=messages, tools=TOOLS[:1], tool_choice=choice, parallel_tool_calls=False, temperature=0, max_tokens=200
            )
            message = answer.choices[0].message
            self.assertEqual((answer.choices[0].finish_reason, message.content, len(message.tool_calls)), ("tool_calls", None, 1), answer)
            call = message.tool_calls[0]
            self.assertEqual(call.function.name, "add")
            self.assertIsInstance(call.function.parsed_arguments, Add)
            messages += [message, {"role": "tool", "tool_call_id": call.id, "content": "5"}]
            self.assertTrue(self.chat(messages=messages, tools=TOOLS).choices[0].message.content)
        named = self.chat(tools=TOOLS, tool_choice={"type": "function", "function": {"name": "stop"}}, max_tokens=60).choices[0].message
        self.assertEqual([c.function.name for c in named.tool_calls], ["stop"])
        self.assertIsInstance(json.loads(named.tool_calls[0].function.arguments), dict)
        chunks = list(self.chat(tools=TOOLS[:1], tool_choice="required", parallel_tool_calls=False, max_tokens=200, stream=True))
        calls = [c for chunk in chunks for c in chunk.choices[0].delta.tool_calls or []]
        self.assertEqual([(c.index, c.function.name) for c in calls], [(0, "add")])
        Add.model_validate_json(calls[0].function.arguments)
        self.assertEqual(chunks[-1].choices[0].finish_reason, "tool_calls")
        without = self.chat().usage.prompt_tokens
        self.assertGreater(self.chat(tools=TOOLS).usage.prompt_tokens, without)
        self.assertEqual(self.chat(tools=TOOLS, tool_choice="none").usage.prompt_tokens, without)

    def test_custom_tools(self):
        custom = {"type": "custom", "custom": {"name": "note", "description": "Notes.", "format": {"type": "grammar", "grammar": {"syntax": "regex", "definition": "[a-c]{1,4}"}}}}
        more = {"tools": [*TOOLS, custom], "tool_choice": {"type": "custom", "custom": {"name": "note"}}, "max_tokens": 200}
        message = self.chat(**more).choices[0].message
        call = message.tool_calls[0]
        self.assertEqual((len(message.tool_calls), call.type, call.custom.name), (1, "custom", "note"))
        self.assertRegex(call.custom.input, r"\A[a-c]{1,4}\Z")
        turns = [*user(STORY), message.model_dump(exclude_none=True), {"role": "tool", "tool_call_id": call.id, "content": [{"type": "text", "text": "noted"}]}]
        self.assertTrue(self.chat(messages=turns, tools=[custom]).choices[0].message.content)

    def test_functions(self):
        function = TOOLS[0]["function"]
        choice = self.chat(functions=[function], function_call={"name": "add"}, max_tokens=200).choices[0]
        self.assertEqual((choice.finish_reason, choice.message.function_call.name, choice.message.tool_calls), ("function_call", "add", None))
        Add.model_validate_json(choice.message.function_call.arguments)
        turns = [*user(STORY), choice.message.model_dump(exclude_none=True), {"role": "function", "name": "add", "content": "5"}]
        self.assertTrue(self.chat(messages=turns, functions=[function], function_call="none").choices[0].message.content)

    def test_thinking(self):
        message = self.chat(reasoning_effort="high").choices[0].message
        self.assertTrue(message.reasoning_content)
        self.assertEqual(message.reasoning, message.reasoning_content)
        self.assertIsNone(getattr(self.chat(reasoning_effort="none").choices[0].message, "reasoning", None))

    def test_images(self):
        def ask(url):
            return self.chat(model=VISION_MODEL, messages=[{"role": "user", "content": [{"type": "text", "text": "What?"}, {"type": "image_url", "image_url": {"url": url}}]}], max_tokens=4)

        without = self.chat(model=VISION_MODEL, messages=user("What?"), max_tokens=4)
        self.assertGreater(ask(picture("shapes.png")).usage.prompt_tokens, without.usage.prompt_tokens)
        self.refused(openai.BadRequestError, "data URL", ask, url=URL + "/shapes.png")

    def test_errors(self):
        error = self.refused(openai.NotFoundError, "ingot pull", self.chat, model="nothing")
        self.assertEqual((error.code, error.type), ("model_not_found", "invalid_request_error"))
        self.refused(openai.NotFoundError, "ingot pull", self.chat, model="nothing", stream=True)
        error = self.refused(openai.BadRequestError, "context", self.chat, messages=user("word " * 600))
        self.assertEqual(error.code, "context_length_exceeded")
        error = self.refused(openai.BadRequestError, "not supported", self.chat, modalities=["text", "audio"])
        self.assertEqual(error.param, "modalities")
        self.assertTrue(self.chat(verbosity="low", service_tier="flex", store=True, metadata={"a": "b"}, safety_identifier="s").choices)
        error = self.refused(openai.BadRequestError, "tool_choice", self.chat, tool_choice="required")
        self.refused(openai.BadRequestError, "format", self.chat, response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "nothing"}}})
        self.refused(openai.NotFoundError, "not found", self.client.post, path="/nothing", cast_to=object)

    def test_cancel(self):
        stream = self.chat(model=MODEL, max_tokens=400, stream=True, extra_body={"ignore_eos": True})
        next(iter(stream))
        stream.close()
        self.assertTrue(wait(idle), get("/api/ps"))

    def test_async(self):
        async def several():
            async with openai.AsyncOpenAI(base_url=URL + "/v1", api_key="none", max_retries=0) as client:

                async def one():
                    stream = await client.chat.completions.create(model=MODEL, messages=user(STORY), temperature=0, max_tokens=12, stream=True)
                    return "".join([c.choices[0].delta.content or "" async for c in stream])

                return await asyncio.gather(*(one() for _ in range(4)))

        texts = asyncio.run(several())
        self.assertEqual(len(set(texts)), 1)
        self.assertTrue(texts[0])


class Completions(Case):
    def complete(self, **more):
        return self.client.completions.create(**{"model": MODEL, "prompt": STORY, "temperature": 0, "max_tokens": 8, **more})

    def test_completions(self):
        whole = self.complete()
        self.assertIn("there was", whole.choices[0].text)
        self.assertEqual((whole.choices[0].finish_reason, whole.usage.completion_tokens), ("length", 8))
        self.assertEqual("".join(c.choices[0].text for c in self.complete(stream=True)), whole.choices[0].text)
        self.assertEqual(self.complete(echo=True).choices[0].text, STORY + whole.choices[0].text)
        several = self.complete(prompt=[STORY, "The dog"], n=2)
        self.assertEqual([c.index for c in several.choices], [0, 1, 2, 3])
        self.assertEqual([c.text for c in several.choices[:2]], [whole.choices[0].text] * 2)
        self.assertEqual(several.usage.completion_tokens, 4 * 8)
        probs = self.complete(logprobs=2).choices[0].logprobs
        self.assertEqual("".join(probs.tokens), whole.choices[0].text)
        self.assertEqual([len(probs.token_logprobs), len(probs.text_offset), len(probs.top_logprobs)], [8, 8, 8])
        self.refused(openai.BadRequestError, "suffix", self.complete, suffix="the end")
        self.assertEqual(self.complete(prompt=[1, 5, 9]).usage.prompt_tokens, 3)
        self.assertEqual(len(self.complete(prompt=[[1, 5, 9], [1, 7]]).choices), 2)

    def test_models(self):
        ids = [m.id for m in self.client.models.list()]
        self.assertIn(MODEL, ids)
        self.assertEqual(self.client.models.retrieve(MODEL).id, MODEL)
        self.refused(openai.NotFoundError, "ingot pull", self.client.models.retrieve, model="team/nothing")


class Responses(Case):
    def respond(self, **more):
        return self.client.responses.create(**{"model": CHAT_MODEL, "input": STORY, "temperature": 0, "max_output_tokens": 12, **more})

    def test_responses(self):
        whole = self.respond(instructions="Be kind.")
        self.assertEqual((whole.object, whole.status, whole.incomplete_details.reason), ("response", "incomplete", "max_output_tokens"))
        self.assertTrue(whole.output_text)
        self.assertEqual((whole.usage.output_tokens, whole.usage.total_tokens), (12, whole.usage.input_tokens + 12))
        again = self.respond(input=[{"role": "developer", "content": "Be kind."}, {"role": "user", "content": [{"type": "input_text", "text": STORY}]}])
        self.assertEqual(again.output_text, whole.output_text)
        self.assertGreater(again.usage.input_tokens_details.cached_tokens, 0)
        longer = self.respond(input=[*user(STORY), *[o.model_dump(exclude_none=True) for o in whole.output], *user("And then?")])
        self.assertGreater(longer.usage.input_tokens, self.respond().usage.input_tokens + 5)

    def test_stream(self):
        text = self.respond().output_text
        events = list(self.respond(stream=True))
        self.assertEqual("".join(e.delta for e in events if e.type == "response.output_text.delta"), text)
        self.assertEqual([e.sequence_number for e in events], list(range(len(events))))
        self.assertEqual((events[0].type, events[-1].type), ("response.created", "response.incomplete"))
        self.assertEqual(events[-1].response.output_text, text)
        with self.client.responses.stream(model=CHAT_MODEL, input="A pet.", text_format=Pet, temperature=0, max_output_tokens=150) as stream:
            self.assertIsInstance(stream.get_final_response().output_parsed, Pet)
        events = list(self.respond(stream=True, reasoning={"effort": "low"}))
        self.assertTrue([e for e in events if e.type == "response.reasoning_text.delta"])

    def test_structured(self):
        answer = self.client.responses.parse(model=CHAT_MODEL, input="A pet.", text_format=Pet, temperature=0, max_output_tokens=150)
        self.assertIsInstance(answer.output_parsed, Pet)

    def test_tools(self):
        tool = {"type": "function", "name": "add", "description": "Adds.", "strict": True, "parameters": {**Add.model_json_schema(), "additionalProperties": False}}
        more = {"tools": [tool], "tool_choice": {"type": "function", "name": "add"}, "max_output_tokens": 200}
        answer = self.respond(**more)
        call = answer.output[-1]
        self.assertEqual((answer.status, call.type, call.name), ("completed", "function_call", "add"))
        Add.model_validate_json(call.arguments)
        with self.client.responses.stream(model=CHAT_MODEL, input=STORY, temperature=0, **more) as stream:
            self.assertEqual(stream.get_final_response().output[-1].arguments, call.arguments)
        turns = [*user(STORY), *[o.model_dump(exclude_none=True) for o in answer.output], {"type": "function_call_output", "call_id": call.call_id, "output": "5"}]
        self.assertTrue(self.respond(input=turns, tools=[tool]).output_text)

    def test_namespaces(self):
        inner = {"type": "function", "name": "add", "description": "Adds.", "parameters": Add.model_json_schema()}
        custom = {"type": "custom", "name": "note", "format": {"type": "grammar", "syntax": "regex", "definition": "[a-c]{1,4}"}}
        space = {"type": "namespace", "name": "mcp__sums", "description": "Sums.", "tools": [inner, custom]}
        more = {"tools": [space], "max_output_tokens": 200}
        answer = self.respond(tool_choice={"type": "function", "name": "add"}, **more)
        call = answer.output[-1]
        self.assertEqual((call.type, call.namespace, call.name, answer.tools[0].name), ("function_call", "mcp__sums", "add", "mcp__sums"))
        events = list(self.respond(tool_choice={"type": "custom", "name": "note"}, stream=True, **more))
        note = events[-1].response.output[-1]
        self.assertEqual((note.type, note.namespace, note.name), ("custom_tool_call", "mcp__sums", "note"))
        self.assertRegex(note.input, r"\A[a-c]{1,4}\Z")
        self.assertEqual([e.delta for e in events if e.type == "response.custom_tool_call_input.delta"], [note.input])
        self.assertEqual([e.input for e in events if e.type == "response.custom_tool_call_input.done"], [note.input])
        results = [{"type": "function_call_output", "call_id": call.call_id, "output": "5"}, {"type": "custom_tool_call_output", "call_id": note.call_id, "output": "noted"}]
        items = [i.model_dump(exclude_none=True) for i in (call, note)]
        self.assertTrue(self.respond(input=[*user(STORY), *items, *results], tools=[space]).output_text)

    def test_stored(self):
        first = self.respond(store=True)
        again = self.client.responses.retrieve(first.id)
        self.assertEqual((again.output_text, again.status, again.store), (first.output_text, first.status, True))
        second = self.respond(input="And then?", previous_response_id=first.id, store=True)
        self.assertEqual(second.previous_response_id, first.id)
        whole = self.respond(input=[*user(STORY), *[o.model_dump(exclude_none=True) for o in first.output], *user("And then?")])
        self.assertEqual((second.output_text, second.usage.input_tokens), (whole.output_text, whole.usage.input_tokens))
        items = list(self.client.responses.input_items.list(second.id, order="asc", limit=1))
        self.assertEqual([i.role for i in items if i.type == "message"], ["user", "assistant", "user"])
        count = self.client.responses.input_tokens.count(model=CHAT_MODEL, input="And then?", previous_response_id=first.id)
        self.assertEqual(count.input_tokens, second.usage.input_tokens)
        self.client.responses.delete(first.id)
        self.refused(openai.NotFoundError, "is stored", self.client.responses.retrieve, response_id=first.id)
        error = self.refused(openai.BadRequestError, "whole conversation", self.respond, previous_response_id=second.id)
        self.assertEqual((error.param, error.code), ("previous_response_id", "previous_response_not_found"))

    def test_background(self):
        answer = self.respond(background=True)
        self.assertTrue(wait(lambda: self.client.responses.retrieve(answer.id).status == "incomplete"))
        self.assertEqual(self.client.responses.retrieve(answer.id).output_text, self.respond().output_text)
        long = self.respond(model=MODEL, background=True, max_output_tokens=400, extra_body={"ignore_eos": True})
        self.assertEqual(self.client.responses.cancel(long.id).status, "cancelled")
        self.assertTrue(wait(idle), get("/api/ps"))

    def test_compact(self):
        compacted = self.client.responses.compact(model=CHAT_MODEL, input=[*user(STORY), {"role": "assistant", "content": "There was."}], instructions="Be kind.")
        self.assertEqual(([o.type for o in compacted.output], compacted.object), (["message", "compaction"], "response.compaction"))
        items = [o.model_dump(exclude_none=True) for o in compacted.output]
        answer = self.respond(input=[*items, *user("And then?")])
        self.assertGreater(answer.usage.input_tokens, self.respond(input=[items[0], *user("And then?")]).usage.input_tokens)
        events = list(self.respond(input=[*user(STORY), {"type": "compaction_trigger"}], stream=True))
        self.assertEqual([o.type for o in events[-1].response.output], ["compaction"])

    def test_images(self):
        parts = [{"type": "input_text", "text": "What?"}, {"type": "input_image", "detail": "auto", "image_url": picture("shapes.png")}]
        seen = self.respond(model=VISION_MODEL, input=[{"role": "user", "content": parts}], max_output_tokens=4)
        self.assertGreater(seen.usage.input_tokens, self.respond(model=VISION_MODEL, input="What?", max_output_tokens=4).usage.input_tokens)

    def test_errors(self):
        error = self.refused(openai.BadRequestError, "no conversations", self.respond, conversation="conv_1")
        self.assertEqual(error.param, "conversation")
        error = self.refused(openai.BadRequestError, "pictures", self.respond, input=[{"role": "user", "content": [{"type": "input_image", "detail": "auto", "image_url": picture("shapes.png")}]}])
        self.assertEqual(error.param, "input[0].content[0].image_url")
        self.refused(openai.NotFoundError, "ingot pull", self.respond, model="nothing", stream=True)
        self.refused(openai.BadRequestError, "tool_choice", self.respond, tools=[{"type": "web_search"}], tool_choice={"type": "web_search"})
        self.assertEqual(self.respond(tools=[{"type": "web_search"}]).tools, [])

    def test_cancel(self):
        stream = self.respond(model=MODEL, max_output_tokens=400, stream=True, extra_body={"ignore_eos": True})
        next(iter(stream))
        stream.close()
        self.assertTrue(wait(idle), get("/api/ps"))


class Embeddings(Case):
    def embed(self, texts, **more):
        return self.client.embeddings.create(model=MODEL, input=texts, **more)

    def test_embeddings(self):
        texts = [STORY, "A lamp stood by the river."]
        packed, plain = self.embed(texts), self.embed(texts, encoding_format="float")  # without it the client asks for base64
        self.assertEqual((packed.object, packed.model, [d.index for d in packed.data]), ("list", MODEL, [0, 1]))
        self.assertGreater(packed.usage.prompt_tokens, 8)
        self.assertEqual(packed.usage.total_tokens, packed.usage.prompt_tokens)
        for a, b in zip(packed.data, plain.data):
            self.assertAlmostEqual(sum(x * y for x, y in zip(a.embedding, b.embedding)), 1, places=4)
        ids = self.embed([[5, 6, 7], [8]], dimensions=8)
        self.assertEqual([len(d.embedding) for d in ids.data], [8, 8])
        self.assertEqual(ids.usage.prompt_tokens, 4)
        self.assertEqual(len(self.embed([5, 6, 7]).data), 1)

    def test_refused(self):
        self.refused(openai.BadRequestError, "at most 512", self.embed, texts="lamp " * 700)
        self.refused(openai.BadRequestError, "dimensions", self.embed, texts=STORY, dimensions=1 << 20)
        self.refused(openai.BadRequestError, "missing", self.embed, texts=[])
        self.refused(openai.NotFoundError, "ingot pull", self.client.embeddings.create, model="nothing", input=STORY)


if __name__ == "__main__":
    unittest.main()
