"""Asks for values with one client of structured output, and validates them with pydantic.

Usage: python run.py CLIENT ORIGIN MODEL
Prints a line of JSON for each case: {"client":..., "case":..., "error":...}.
"""

import json
import sys

import models
from pydantic import BaseModel, Field

CLIENT, ORIGIN, MODEL = sys.argv[1:4]
URL = ORIGIN + "/v1"
ASK = "A value."
TOKENS = 150


class Point(BaseModel):
    x: int = Field(ge=0, le=9)
    label: str = Field(max_length=5)


def refused(e):
    """Whether the server refused the request, or could not be reached; otherwise there was an answer."""
    while e is not None:
        kinds = [c.__name__ for c in type(e).__mro__]
        if any(k in kinds for k in ("APIError", "ModelHTTPError", "HTTPError")) or "Error code:" in str(e):
            return True
        e = e.__cause__ or e.__context__
    return False


def run(case, ask, free=False):
    """Runs a case. free: the request leaves the answer free, so the model's need not be valid."""
    error = ""
    try:
        ask()
    except Exception as e:  # every failure is a line
        if not free or refused(e):
            error = f"{type(e).__name__}: {e}"[:300]
    print(json.dumps({"client": CLIENT, "case": case, "error": error}), flush=True)


def instructor():
    import instructor as library
    from openai import OpenAI

    # These modes put the schema into the prompt, or leave it to the model whether it calls.
    free = ["PARALLEL_TOOLS", "JSON", "MD_JSON", "JSON_O1"]
    modes = ["TOOLS", "TOOLS_STRICT", "PARALLEL_TOOLS", "JSON", "JSON_SCHEMA", "MD_JSON", "FUNCTIONS", "JSON_O1",
             "RESPONSES_TOOLS"]
    for mode in modes:
        if not hasattr(library.Mode, mode):
            continue

        def ask():
            client = library.from_openai(OpenAI(base_url=URL, api_key="none", max_retries=0),
                                         mode=getattr(library.Mode, mode))
            many = mode == "PARALLEL_TOOLS"
            from typing import Iterable
            limit = {"max_output_tokens": TOKENS} if mode.startswith("RESPONSES") else {"max_tokens": TOKENS}
            answer = client.create(model=MODEL, response_model=Iterable[Point] if many else Point, max_retries=0,
                                   messages=[{"role": "user", "content": ASK}], temperature=0, **limit)
            for point in list(answer) if many else [answer]:
                Point.model_validate(point.model_dump())

        run(mode, ask, mode in free)
    client = library.from_openai(OpenAI(base_url=URL, api_key="none", max_retries=0), mode=library.Mode.TOOLS)
    for name in models.TYPES:
        of = models.model(name)
        run("TOOLS " + name, lambda: client.create(model=MODEL, response_model=of, max_retries=0, max_tokens=TOKENS,
                                                   temperature=0, messages=[{"role": "user", "content": ASK}]),
            name in models.WIDER)


def outlines():
    import openai
    import outlines as library

    model = library.from_openai(openai.OpenAI(base_url=URL, api_key="none", max_retries=0), MODEL)
    for name in models.TYPES:
        of = models.model(name)
        run(name, lambda: of.model_validate_json(model(ASK, of, max_tokens=TOKENS, temperature=0)),
            name in models.WIDER)


def pydantic_ai():
    from pydantic_ai import Agent, NativeOutput, ToolOutput
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(base_url=URL, api_key="none")
    settings = {"max_tokens": TOKENS, "temperature": 0}
    chat, responses = OpenAIChatModel(MODEL, provider=provider), OpenAIResponsesModel(MODEL, provider=provider)
    for kind, model, output in [("native", chat, NativeOutput), ("tool", chat, ToolOutput),
                                ("responses", responses, NativeOutput)]:
        run(kind, lambda: Agent(model, output_type=output(Point), retries=0).run_sync(ASK, model_settings=settings))
    for name in models.TYPES:
        of = models.model(name)
        run(name, lambda: Agent(chat, output_type=NativeOutput(of), retries=0).run_sync(ASK, model_settings=settings),
            name in models.WIDER)


def langchain():
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(base_url=URL, api_key="none", model=MODEL, max_retries=0, temperature=0, max_tokens=TOKENS)
    for method in ["json_schema", "function_calling"]:
        run(method, lambda: Point.model_validate(model.with_structured_output(Point, method=method).invoke(ASK)))
    for name in models.TYPES:
        of = models.model(name)
        schema = of.model_json_schema()
        run(name, lambda: of.model_validate(model.with_structured_output(
            schema, method="json_schema", strict=False).invoke(ASK)), name in models.WIDER)


{"instructor": instructor, "outlines": outlines, "pydantic-ai": pydantic_ai, "langchain": langchain}[CLIENT]()
