"""The types that are told are those of what is there."""

import ast
import doctest
import pathlib

import drumlin
import drumlin.aio
from drumlin import _drumlin


def test_the_stub_names_what_is_there():
    text = pathlib.Path(drumlin.__file__).with_name("_drumlin.pyi").read_text()
    told = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            told[node.name] = {it.name for it in node.body if isinstance(it, ast.FunctionDef)}
        elif isinstance(node, ast.FunctionDef):
            told[node.name] = set()
    there = {name for name in vars(_drumlin) if not name.startswith("_")}
    assert there == set(told)
    for name, members in told.items():
        of_class = vars(getattr(_drumlin, name)) if members else {}
        named = {it for it in of_class if not it.startswith("_")}
        assert named == {it for it in members if not it.startswith("_")}, name
        assert {it for it in members if it.startswith("_")} <= set(dir(getattr(_drumlin, name))) | {"__buffer__"}, name
    assert set(drumlin.__all__) <= set(vars(drumlin))


def test_the_examples_do_what_they_say():
    for module in (drumlin, drumlin.aio):
        failed, tried = doctest.testmod(module)
        assert tried > 0 and failed == 0
