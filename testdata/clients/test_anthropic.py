"""Anthropic's own Python package against `ingot serve`."""

import asyncio
import base64
import re
import unittest
import urllib.request

import anthropic
from clients import CHAT_MODEL, MODEL, PDF, PICTURES, STORY, URL, VISION_MODEL, get, idle, wait

GREEDY = {"max_tokens": 12, "extra_body": {"temperature": 0}}  # the package itself knows no temperature any more
ADD = {
    "name": "add",
    "description": "Add two numbers.",
    "input_schema": {
        "type": "object",
        "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 9}, "b": {"type": "integer", "minimum": 0, "maximum": 9}},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
}


def user(*content):
    return {"role": "user", "content": content[0] if len(content) == 1 and isinstance(content[0], str) else list(content)}


def text(words, **more):
    return {"type": "text", "text": words, **more}


class Case(unittest.TestCase):
    def setUp(self):
        self.client = anthropic.Anthropic(base_url=URL, api_key="any", max_retries=0)

    def create(self, *messages, model=CHAT_MODEL, **more):
        return self.client.messages.create(model=model, messages=list(messages), **{**GREEDY, **more})

    def refused(self, kind, words, *messages, **more):
        """Checks that a request is refused with an error of a type of the client, which says some words."""
        with self.assertRaises(kind) as caught:
            self.create(*messages, **more)
        error = caught.exception.body["error"]
        self.assertIn(words, error["message"])
        return error["type"]


class Messages(Case):
    def test_message(self):
        whole = self.create(user(STORY))
        self.assertEqual((whole.type, whole.role, whole.model, whole.stop_reason), ("message", "assistant", CHAT_MODEL, "max_tokens"))
        self.assertEqual([b.type for b in whole.content], ["text"])
        self.assertEqual(whole.usage.output_tokens, 12)
        self.assertTrue(whole.content[0].text)
        counted = self.client.messages.count_tokens(model=CHAT_MODEL, messages=[user(STORY)])
        self.assertEqual(whole.usage.input_tokens + whole.usage.cache_read_input_tokens, counted.input_tokens)

        with self.client.messages.stream(model=CHAT_MODEL, messages=[user(STORY)], **GREEDY) as stream:
            parts = list(stream.text_stream)
            final = stream.get_final_message()
        self.assertGreater(len(parts), 3)
        self.assertEqual("".join(parts), whole.content[0].text)
        self.assertEqual((final.content[0].text, final.stop_reason), (whole.content[0].text, "max_tokens"))
        self.assertEqual(final.usage.output_tokens, 12)
        self.assertGreater(final.usage.cache_read_input_tokens, 0)
        self.assertEqual(final.usage.input_tokens + final.usage.cache_read_input_tokens, counted.input_tokens)

        kinds = [e.type for e in self.create(user(STORY), stream=True)]
        self.assertEqual(kinds[:2], ["message_start", "content_block_start"])
        self.assertEqual(kinds[-3:], ["content_block_stop", "message_delta", "message_stop"])

    def test_stop_and_prefill(self):
        whole = self.create(user(STORY)).content[0].text
        stop = whole.split()[2]
        cut = self.create(user(STORY), stop_sequences=["never", stop])
        self.assertEqual((cut.stop_reason, cut.stop_sequence, cut.content[0].text), ("stop_sequence", stop, whole.split(stop)[0]))
        begun = self.create(user(STORY), {"role": "assistant", "content": cut.content[0].text.rstrip()})
        self.assertTrue(begun.content[0].text.lstrip().startswith(stop), begun.content)

    def test_async(self):
        async def several():
            async def one(client):
                async with client.messages.stream(model=CHAT_MODEL, messages=[user(STORY)], **GREEDY) as stream:
                    return "".join([t async for t in stream.text_stream])

            async with anthropic.AsyncAnthropic(base_url=URL, api_key="any", max_retries=0) as client:
                return await asyncio.gather(*(one(client) for _ in range(4)))

        texts = asyncio.run(several())
        self.assertEqual((len(texts), len(set(texts))), (4, 1))
        self.assertTrue(texts[0])

    def test_session(self):
        """Requests as Claude Code sends them: what they begin alike with is evaluated once."""
        tools = [{**ADD, "name": f"tool_{i}", "description": "Does one thing or another for you, and does it well."} for i in range(6)]
        tools[-1]["cache_control"] = {"type": "ephemeral"}

        def ask(*messages, billing):
            return self.client.beta.messages.create(
                model=CHAT_MODEL,
                system=[
                    text(f"x-anthropic-billing-header: cc_version=2; cch={billing};"),
                    text("You are a helper who writes stories for small children."),
                    text("Use short words. Be kind. Tell of dogs and cats and of the big park. " * 3, cache_control={"type": "ephemeral"}),
                ],
                messages=list(messages),
                tools=tools,
                metadata={"user_id": "u"},
                betas=["claude-code-20250219", "interleaved-thinking-2025-05-14"],
                max_tokens=12,
                extra_body={"temperature": 0, "context_management": {"edits": []}, "service_tier": "auto"},
            )

        def prompt(answer):
            return answer.usage.input_tokens + answer.usage.cache_creation_input_tokens + answer.usage.cache_read_input_tokens

        first = ask(user("A dog ran home."), billing="a1")
        second = ask(user("Why?"), billing="b2")
        self.assertGreater(prompt(first), 100)
        self.assertGreater(second.usage.cache_read_input_tokens, prompt(first) - 12)
        self.assertLess(second.usage.input_tokens, 24)
        # What is created ends with the system prompt, and is read from then on.
        created, read = first.usage.cache_creation_input_tokens, first.usage.cache_read_input_tokens
        self.assertGreater(created + read, prompt(first) - 36)
        self.assertLess(created + read, prompt(first))
        self.assertEqual(first.usage.cache_creation.ephemeral_5m_input_tokens, created)
        self.assertEqual(second.usage.cache_creation_input_tokens, 0)
        turns = [user("A dog ran home."), {"role": "assistant", "content": first.content}, user(text("<system-reminder>Go on.</system-reminder>"), text("And then?"))]
        third = ask(*turns, billing="c3")
        self.assertGreater(third.usage.cache_read_input_tokens, prompt(first))
        self.assertGreater(prompt(third), prompt(first) + 12)

    def test_tools(self):
        for choice in ({"type": "any"}, {"type": "tool", "name": "add"}, {"type": "any", "disable_parallel_tool_use": True}):
            answer = self.create(user("What is 2 and 3?"), tools=[ADD], tool_choice=choice, max_tokens=80)
            calls = [b for b in answer.content if b.type == "tool_use"]
            self.assertTrue(calls and all(c.name == "add" for c in calls), answer)
            if choice != {"type": "any"}:
                self.assertEqual((len(calls), answer.stop_reason), (1, "tool_use"))
        strict = {**ADD, "strict": True}
        with self.client.messages.stream(
            model=CHAT_MODEL, messages=[user("What is 2 and 3?")], tools=[strict], tool_choice={"type": "tool", "name": "add"}, max_tokens=80, extra_body=GREEDY["extra_body"]
        ) as stream:
            partial = "".join(e.partial_json for e in stream if e.type == "input_json")
            final = stream.get_final_message()
        call = final.content[-1]
        self.assertEqual((call.type, sorted(call.input), final.stop_reason), ("tool_use", ["a", "b"], "tool_use"))
        self.assertIn('"a"', partial)
        turns = [
            user("What is 2 and 3?"),
            {"role": "assistant", "content": final.content},
            user({"type": "tool_result", "tool_use_id": call.id, "content": [text("5")]}, text("So?")),
        ]
        self.assertTrue(self.create(*turns, tools=[ADD]).content)
        without = self.create(user(STORY)).usage
        unused = self.create(user(STORY), tools=[ADD], tool_choice={"type": "none"}).usage
        self.assertEqual(unused.input_tokens + unused.cache_read_input_tokens, without.input_tokens + without.cache_read_input_tokens)

    def test_structured(self):
        schema = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer"}}, "required": ["name", "age"], "additionalProperties": False}
        answer = self.create(user("A pet."), max_tokens=80, output_config={"format": {"type": "json_schema", "schema": schema}})
        self.assertRegex(answer.content[0].text, r'^\{"name": ".*", "age": -?[0-9]+\}$')

    def test_thinking(self):
        answer = self.create(user(STORY), thinking={"type": "enabled", "budget_tokens": 4})
        self.assertEqual([b.type for b in answer.content], ["thinking", "text"])
        self.assertTrue(answer.content[0].signature)
        with self.client.messages.stream(
            model=CHAT_MODEL, messages=[user(STORY)], thinking={"type": "enabled", "budget_tokens": 4}, **GREEDY
        ) as stream:
            thoughts = "".join(e.thinking for e in stream if e.type == "thinking")
            final = stream.get_final_message()
        self.assertEqual(thoughts, answer.content[0].thinking)
        self.assertEqual([b.type for b in final.content], ["thinking", "text"])
        self.assertEqual(final.content[0].signature, answer.content[0].signature)
        again = self.create(user(STORY), {"role": "assistant", "content": final.content}, user("And then?"), thinking={"type": "disabled"})
        self.assertEqual([b.type for b in again.content], ["text"])

    def test_images(self):
        data = base64.b64encode((PICTURES / "shapes.png").read_bytes()).decode()
        picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
        ask = {"model": VISION_MODEL, "messages": [user(picture, text("What is this?"))]}
        answer = self.client.messages.create(**ask, max_tokens=4)
        counted = self.client.messages.count_tokens(**ask)
        self.assertEqual(answer.usage.input_tokens + answer.usage.cache_read_input_tokens, counted.input_tokens)
        self.assertGreater(counted.input_tokens, 20)
        url = {"type": "image", "source": {"type": "url", "url": "https://pictures.example/a.png"}}
        self.assertEqual(self.refused(anthropic.BadRequestError, "base64", user(url), model=VISION_MODEL), "invalid_request_error")
        self.refused(anthropic.BadRequestError, "vision", user(picture))
        damaged = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
        self.refused(anthropic.BadRequestError, "picture 1", user(damaged), model=VISION_MODEL)


class Blocks(Case):
    """What other models, Anthropic's own tools and coding clients leave in a conversation."""

    def test_documents(self):
        def document(data, **more):
            return {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": base64.b64encode(data).decode()}, **more}

        def tokens(*content):
            return self.client.messages.count_tokens(model=CHAT_MODEL, messages=[user(*content)]).input_tokens

        short = tokens(text("x"))
        self.assertGreater(tokens(document(PDF.read_bytes()), text("x")), short + 60)
        self.assertGreater(tokens({"type": "document", "title": "T", "source": {"type": "text", "media_type": "text/plain", "data": STORY}}, text("x")), short)
        turns = [user(text("x")), {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "add", "input": {}}]}]
        picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": base64.b64encode((PICTURES / "shapes.png").read_bytes()).decode()}}
        result = [{"type": "tool_result", "tool_use_id": "c", "content": [picture, text("a picture")]}, document(b"damaged")]
        self.assertTrue(self.create(*turns, user(*result), tools=[ADD]).content)

    def test_history_of_another_model(self):
        call = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "dogs"}}
        found = [{"type": "web_search_result", "title": "Dogs", "url": "https://dogs.example", "encrypted_content": "x"}]
        result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": found}
        lost = {"type": "tool_result", "tool_use_id": "unknown", "content": [{"type": "search_result", "source": "s", "title": "t", "content": [text("y")]}]}
        turns = [user(STORY), {"role": "assistant", "content": [call, result, text("Dogs.")]}, user(lost, text("And?"))]
        self.assertTrue(self.create(*turns, tools=[{"type": "web_search_20250305", "name": "web_search"}]).content)

    def test_client_tools(self):
        """Tools that Claude knows by their types; a member of a toolset is a call of its own."""
        tools = [{"type": "bash_20250124", "name": "bash"}, {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"}, {"type": "memory_20250818", "name": "memory"}]
        none = self.client.messages.count_tokens(model=CHAT_MODEL, messages=[user(STORY)]).input_tokens
        self.assertGreater(self.client.messages.count_tokens(model=CHAT_MODEL, messages=[user(STORY)], tools=tools).input_tokens, none + 100)
        call = self.create(user(STORY), tools=tools, tool_choice={"type": "tool", "name": "bash"}, max_tokens=80).content[-1]
        self.assertEqual((call.type, call.name), ("tool_use", "bash"))
        computer = [{"type": "computer_toolset_20260801"}]
        call = self.create(user(STORY), tools=computer, tool_choice={"type": "tool", "name": "computer"}, max_tokens=400).content[-1]
        self.assertEqual((call.type, call.toolset_name), ("tool_use", "computer"))
        deferred = [{**ADD, "defer_loading": True}, {**ADD, "name": "find"}]
        turns = [user(STORY), {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "find", "input": {}}]}]

        def count(*content):
            messages = [*turns, user({"type": "tool_result", "tool_use_id": "c", "content": list(content)})]
            return self.client.messages.count_tokens(model=CHAT_MODEL, messages=messages, tools=deferred).input_tokens

        self.assertGreater(count({"type": "tool_reference", "tool_name": "add"}), count(text("The tool add can be called now.")) + 5)

    def test_models(self):
        first = self.client.models.list(limit=1)
        self.assertTrue(first.has_more)
        models = {m.id: m for m in self.client.models.list(limit=1)}
        self.assertEqual(set(models), {m["name"] for m in get("/api/tags")["models"]})
        m = self.client.models.retrieve(CHAT_MODEL)
        self.assertEqual((m.type, m.lifecycle, m.created_at.tzinfo is not None), ("model", "active", True))
        self.assertGreater(m.max_input_tokens, 100)
        self.assertFalse(m.capabilities.image_input.supported)
        with self.assertRaises(anthropic.NotFoundError):
            self.client.models.retrieve("nothing")


class Errors(Case):
    def test_errors(self):
        self.assertEqual(self.refused(anthropic.NotFoundError, "not found", user(STORY), model="nothing"), "not_found_error")
        self.assertEqual(self.refused(anthropic.BadRequestError, "prompt is too long: ", user("word " * 600)), "invalid_request_error")
        self.refused(anthropic.BadRequestError, "messages", max_tokens=5)
        search = {"type": "web_search_20250305", "name": "web_search"}
        self.refused(anthropic.BadRequestError, "web_search", user(STORY), tools=[search], tool_choice={"type": "tool", "name": "web_search"})
        self.refused(anthropic.BadRequestError, "messages.0.content.0.source", user({"type": "document", "source": {"type": "url", "url": "https://a.example/b.pdf"}}))
        self.refused(anthropic.BadRequestError, "no tool is named", user(STORY), tools=[ADD], tool_choice={"type": "tool", "name": "other"})
        with self.assertRaises(anthropic.NotFoundError):
            self.client.messages.batches.list()

    def test_cancel(self):
        with self.client.messages.stream(model=MODEL, messages=[user(STORY)], max_tokens=400) as stream:
            next(iter(stream.text_stream))
        self.assertTrue(wait(idle), get("/api/ps"))


class Metrics(Case):
    def test_metrics(self):
        self.create(user(STORY))
        with urllib.request.urlopen(URL + "/metrics") as answer:
            self.assertTrue(answer.headers["Content-Type"].startswith("text/plain; version=0.0.4"))
            page = answer.read().decode()

        def value(name, **labels):
            want = ",".join(f'{k}="{v}"' for k, v in labels.items())
            return float(re.search(rf"^{name}{{{re.escape(want)}}} (\S+)$", page, re.MULTILINE).group(1))

        self.assertGreater(value("ingot_requests_total", endpoint="/v1/messages", status="200"), 0)
        for name in ("ingot_generated_tokens_total", "ingot_prompt_tokens_total", "ingot_steps_total", "ingot_prefix_lookups_total", "ingot_inter_token_seconds_count"):
            self.assertGreater(value(name, model=CHAT_MODEL), 0, name)
        self.assertGreater(value("ingot_model_memory_bytes", model=CHAT_MODEL, of="weights"), 1_000_000)


if __name__ == "__main__":
    unittest.main()
