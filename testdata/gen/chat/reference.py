"""The reference of chat templates: the Jinja environment of transformers, with its clock frozen."""

import datetime
import json

from transformers.utils import chat_template_utils

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5)


class _Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return NOW


chat_template_utils.datetime = _Clock


def render(template, variables):
    """Returns {"ok": text}, or {"err": name of the exception}."""
    try:
        return {"ok": chat_template_utils._cached_compile_jinja_template(template).render(**variables)}
    except RecursionError:
        return {"err": "RecursionError"}
    except Exception as e:  # a template can raise any exception
        return {"err": type(e).__name__}


def write(path, value):
    path.write_text(json.dumps(value, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
