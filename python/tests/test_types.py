"""The type hints are those of the module: every name, and every argument with its default."""

import ast
import inspect
import pathlib

import openlapi
from openlapi import _core

STUBS = pathlib.Path(openlapi.__file__).with_name("_core.pyi")
CLASSES = ["Context", "Counter", "Handler", "Listener", "Session", "Window"]


def hinted():
    """The functions of the stubs: the name, and the arguments as text without types."""
    found = {}

    def add(prefix, node):
        decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
        if any(decorator.endswith(".setter") for decorator in decorators):
            return
        if "property" in decorators:
            found[prefix + node.name] = "property"
            return
        for argument in ast.walk(node.args):
            if isinstance(argument, ast.arg):
                argument.annotation = None
        text = ast.unparse(node.args).removeprefix("self, /").removeprefix("self").removeprefix(", ")
        found[prefix + node.name] = text.replace(" ", "")

    for node in ast.parse(STUBS.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            add("", node)
        elif isinstance(node, ast.ClassDef) and node.name in CLASSES:
            for member in node.body:
                if isinstance(member, ast.FunctionDef):
                    add(f"{node.name}.", member)
    return found


def built():
    """The same of the module."""

    def text(function):
        signature = inspect.signature(function)
        kept = [p for p in signature.parameters.values() if p.name != "self"]
        kept = [p.replace(kind=p.POSITIONAL_OR_KEYWORD) if p.kind == p.POSITIONAL_ONLY else p for p in kept]
        return str(signature.replace(parameters=kept))[1:-1].replace(" ", "")

    functions = "init", "connect", "listen", "close_all", "in_job", "library_path"
    found = {name: text(getattr(_core, name)) for name in functions}
    for name in CLASSES:
        for member, value in vars(getattr(_core, name)).items():
            if inspect.isgetsetdescriptor(value):
                found[f"{name}.{member}"] = "property"
            elif callable(value) and (not member.startswith("__") or member in ("__enter__", "__exit__", "__call__")):
                found[f"{name}.{member}"] = text(value)
    return found


def test_hints_are_those_of_the_module():
    assert hinted() == built()


def test_everything_is_documented():
    for name in CLASSES:
        kind = getattr(openlapi, name)
        assert kind.__doc__, name
        for member, value in vars(kind).items():
            assert member.startswith("__") or value.__doc__, f"{name}.{member}"
    assert openlapi.init.__doc__ and openlapi.Error.__doc__


def test_what_is_exported_exists():
    assert all(hasattr(openlapi, name) for name in openlapi.__all__)
    assert STUBS.with_name("py.typed").exists()
