"""The pydantic types that a JSON schema can express, each as the field of a model."""

import datetime
import decimal
import enum
import ipaddress
import pathlib
import typing
import uuid
from typing import Annotated, Any, Literal, Optional, Union

import pydantic
import typing_extensions
from pydantic import BaseModel, ConfigDict, Field


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = Field(ge=0, le=9)


class Dog(BaseModel):
    kind: Literal["dog"]
    good: bool


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: int
    b: Optional[str] = None


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int


class Tree(BaseModel):
    name: str = Field(max_length=3)
    kids: list["Tree"] = Field(max_length=1)


class Pair(typing.NamedTuple):
    left: int
    right: bool


class Typed(typing_extensions.TypedDict):  # pydantic wants this one before Python 3.12
    a: int


class Boxed(pydantic.RootModel[list[int]]):
    pass


TYPES = {
    "str": str, "int": int, "float": float, "bool": bool, "none": None, "any": Any, "bytes": bytes,
    "decimal": Annotated[decimal.Decimal, Field(max_digits=6, decimal_places=2)], "date": datetime.date,
    "time": datetime.time, "datetime": datetime.datetime, "timedelta": datetime.timedelta, "uuid": uuid.UUID,
    "uuid4": pydantic.UUID4, "path": pathlib.Path, "ipv4": ipaddress.IPv4Address,
    "ipv6": ipaddress.IPv6Address, "ipv4network": ipaddress.IPv4Network, "ipany": pydantic.IPvAnyAddress,
    "url": pydantic.HttpUrl, "anyurl": pydantic.AnyUrl, "json": pydantic.Json, "base64": pydantic.Base64Str,
    "secret": pydantic.SecretStr, "past": pydantic.PastDate, "aware": pydantic.AwareDatetime,
    "min_length": Annotated[str, Field(min_length=2)], "max_length": Annotated[str, Field(max_length=3)],
    "pattern": Annotated[str, Field(pattern="^[a-c]+$")],
    "pattern_length": Annotated[str, Field(pattern="^[a-c]+$", min_length=2, max_length=4)],
    "ge": Annotated[int, Field(ge=3)], "gt": Annotated[float, Field(gt=3)], "le": Annotated[int, Field(le=3)],
    "lt": Annotated[float, Field(lt=3)], "between": Annotated[int, Field(ge=3, le=5)],
    "multiple": Annotated[int, Field(multiple_of=7)], "positive": pydantic.PositiveInt,
    "negative": pydantic.NegativeFloat, "finite": pydantic.FiniteFloat, "strict_int": pydantic.StrictInt,
    "conlist": Annotated[list[int], Field(min_length=1, max_length=2)], "literal": Literal["x", 2, True],
    "literal_negative": Literal[-2], "enum": Color, "int_enum": Level, "optional": Optional[int],
    "union": Union[int, bool, None], "list": list[int],
    "set": Annotated[set[Literal["a", "b"]], Field(max_length=2)], "frozenset": frozenset[Color],
    "tuple": tuple[int, bool], "tuple_many": tuple[bool, ...], "dict": dict[str, int],
    "dict_enum": dict[Color, int], "dict_int": dict[Annotated[str, Field(pattern="^[a-z]$")], int],
    "named_tuple": Pair, "typed_dict": Typed, "model": Cat, "models": list[Cat], "forbid": Strict,
    "allow": Open, "recursive": Tree, "root": Boxed,
    "discriminated": Annotated[Union[Cat, Dog], Field(discriminator="kind")],
    "default": Annotated[int, Field(default=3)], "alias": Annotated[int, Field(alias="other-name")],
}

# What these types accept is less than their schemas say: there is no keyword for it, or the format is pydantic's own.
WIDER = {"decimal", "uuid4", "ipv4network", "ipany", "url", "anyurl", "json", "base64", "past", "dict_int",
         "aware", "path", "bytes"}


def model(name: str) -> type[BaseModel]:
    return pydantic.create_model("Value", value=(TYPES[name], ...))
