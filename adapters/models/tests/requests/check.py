#!/usr/bin/env python3
"""Checks requests of all wires against the types of the official SDKs. From this directory:

    python3 -m venv /tmp/sdks && /tmp/sdks/bin/pip install anthropic botocore openai google-genai
    /tmp/sdks/bin/python check.py [FILE...]

A file is one of the requests or recordings here, whose member `body` or `next` is checked, or what the example `decode`
prints. Without files, all requests and recordings are checked. Members that the SDK does not know are reported, too.
"""

import importlib
import json
import pkgutil
import sys
import warnings
from pathlib import Path

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from typing_extensions import is_typeddict

warnings.filterwarnings("ignore")
HERE = Path(__file__).resolve().parent
KNOWN_ONLY = ConfigDict(extra="forbid", arbitrary_types_allowed=True)


def close(package):
    """Makes the dictionaries of a package refuse members that they do not know."""
    package = importlib.import_module(package)
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        try:
            module = importlib.import_module(module.name)
        except ImportError:
            continue
        for value in vars(module).values():
            if is_typeddict(value):
                value.__pydantic_config__ = KNOWN_ONLY


def anthropic():
    close("anthropic.types")
    # Programs of both interfaces send the same members; the beta knows more of them.
    from anthropic.types.beta.message_create_params import MessageCreateParamsStreaming

    return TypeAdapter(MessageCreateParamsStreaming).validate_python


def chat():
    close("openai.types")
    from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming

    return TypeAdapter(CompletionCreateParamsStreaming).validate_python


def responses():
    close("openai.types")
    from openai.types.responses.response_create_params import ResponseCreateParamsStreaming

    return TypeAdapter(ResponseCreateParamsStreaming).validate_python


def gemini():
    from google.genai import types

    class Request(BaseModel):
        """What `generateContent` takes: the SDK builds it from arguments."""

        model_config = ConfigDict(extra="forbid", alias_generator=lambda name: name, populate_by_name=True)
        contents: list[types.Content]
        systemInstruction: types.Content | None = None
        tools: list[types.Tool] | None = None
        toolConfig: types.ToolConfig | None = None
        safetySettings: list[types.SafetySetting] | None = None
        generationConfig: types.GenerationConfig | None = None
        cachedContent: str | None = None

    return Request.model_validate


def converse():
    from botocore.session import Session
    from botocore.validate import ParamValidator

    shape = Session().get_service_model("bedrock-runtime").operation_model("ConverseStream").input_shape

    def unknown(value, shape, place):
        """Returns the members that the SDK does not know: its validator lets them pass."""
        if shape.type_name == "structure" and isinstance(value, dict) and not getattr(shape, "is_document_type", False):
            for name, inner in value.items():
                known = shape.members.get(name)
                yield from unknown(inner, known, f"{place}/{name}") if known else [f"{place}/{name}"]
        elif shape.type_name == "list" and isinstance(value, list):
            for index, inner in enumerate(value):
                yield from unknown(inner, shape.member, f"{place}/{index}")

    def check(body):
        body = {"modelId": "m", **body}
        report = ParamValidator().validate(body, shape)
        wrong = [report.generate_report()] if report.has_errors() else []
        wrong += [f"unknown member {place}" for place in unknown(body, shape, "")]
        if wrong:
            raise ValueError("\n".join(wrong))

    return check


WIRES = {"anthropic": anthropic, "converse": converse, "chat": chat, "responses": responses, "gemini": gemini}


def bodies(path):
    """Returns the name of the wire of a file, and the bodies in it."""
    text, decoder, at, found = path.read_text(), json.JSONDecoder(), 0, []
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        value, at = decoder.raw_decode(text, at)
        value = value.get("decoded", value) if isinstance(value, dict) else {}
        found += [value[name] for name in ("body", "next") if value.get(name)]
    wire = next((part for part in reversed(path.parts[:-1]) if part in WIRES), None)
    return wire, [around(wire, body) for body in found]


def around(wire, answer):
    """Returns a request with an answer that goes back, unless it is one."""
    user = {"role": "user", "content": "go on"}
    match wire, answer:
        case "anthropic", list():
            messages = [user, {"role": "assistant", "content": answer}, user]
            return {"model": "m", "max_tokens": 9, "stream": True, "messages": messages}
        case "chat", {"role": "assistant"}:
            return {"model": "m", "stream": True, "messages": [user, answer, user]}
        case "responses", list():
            return {"model": "m", "stream": True, "input": [user, *answer]}
        case "converse", list():
            user = {"role": "user", "content": [{"text": "go on"}]}
            return {"messages": [user, {"role": "assistant", "content": answer}, user]}
        case "gemini", list():
            return {"contents": [{"role": "model", "parts": answer}]}
    return answer


def main():
    files = [Path(name).resolve() for name in sys.argv[1:]]
    files = files or sorted(HERE.glob("*/*.json")) + sorted(HERE.parent.glob("recordings/*/*.expected.json"))
    checks, wrong, count = {}, 0, 0
    for path in files:
        wire, found = bodies(path)
        if wire and wire not in checks:
            checks[wire] = WIRES[wire]()
        for body in found if wire else []:
            count += 1
            try:
                checks[wire](body)
            except ValueError as error:
                wrong += 1
                print(f"{path.relative_to(HERE.parent) if path.is_relative_to(HERE.parent) else path}:")
                if not isinstance(error, ValidationError):
                    print("   ", error)
                    continue
                # A value that fits none of several types is reported once for each: the nearest has the fewest.
                for problem in error.errors(include_url=False, include_input=False)[:60]:
                    print("   ", "/".join(str(part) for part in problem["loc"]), "-", problem["msg"])
    print(f"{count} requests, {wrong} that the types refuse")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
