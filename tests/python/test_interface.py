"""The interface as tools and people see it: the stub, help(), and the module without a runtime or a torch."""

import ast
import importlib.util
import inspect
import os
import pathlib
import pydoc
import re
import subprocess
import sys

import pytest

import tessera

PACKAGE = pathlib.Path(tessera.__file__).parent


def stub():
    return ast.parse((PACKAGE / "__init__.pyi").read_text()).body


def parameters_of_stub(function):
    arguments = function.args
    names = [argument.arg for argument in arguments.posonlyargs + arguments.args if argument.arg != "self"]
    if arguments.kwonlyargs:
        names.append("*")
    names += [argument.arg for argument in arguments.kwonlyargs]
    return names + (["**" + arguments.kwarg.arg] if arguments.kwarg else [])


def parameters_of(function):
    """Of a function in C++, the first line of the text that help() shows."""
    if inspect.isfunction(function):
        signature = str(inspect.signature(function))
    else:
        signature = function.__doc__.splitlines()[0]
    inside = signature[signature.index("(") + 1:signature.rindex(")")]
    names = [re.split(r"[:=]", part)[0].strip() for part in re.split(r",(?![^\[(]*[\])])", inside)]
    return [name for name in names if name and name != "self"]


def test_the_stub_has_every_public_name():
    names = {node.name for node in stub() if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    assert set(tessera.__all__) <= names
    for name in tessera.__all__:
        assert getattr(tessera, name).__doc__, name
    assert (PACKAGE / "py.typed").exists()


def test_the_stub_has_the_parameters_of_every_function():
    checked = 0
    for node in stub():
        if isinstance(node, ast.FunctionDef):
            assert parameters_of(getattr(tessera, node.name)) == parameters_of_stub(node), node.name
            checked += 1
        elif isinstance(node, ast.ClassDef) and node.name in ("Array", "Plan"):
            for member in node.body:
                if isinstance(member, ast.FunctionDef):
                    assert hasattr(getattr(tessera, node.name), member.name), member.name
                    checked += 1
    assert checked > 30


def test_members_of_classes_are_in_the_stub():
    for name in ("Array", "Plan"):
        members = {member.name for node in stub() if getattr(node, "name", "") == name for member in node.body
                   if isinstance(member, ast.FunctionDef)}
        public = {member for member in vars(getattr(tessera, name)) if not member.startswith("_")}
        assert public <= members


def test_help_is_worth_reading():
    text = pydoc.render_doc(tessera.gemm, renderer=pydoc.plaintext)
    for name in parameters_of(tessera.gemm):
        assert name == "*" or re.search(rf"\b{name}\b", text.split("Returns act(", 1)[1]), name
    assert "tessera.gemm(a, b, activation=" in tessera.__doc__


def run(code, **environment):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(PACKAGE.parent), **environment})


def test_without_a_runtime_the_import_says_what_is_missing():
    done = run("import importlib.util\n"  # the file alone: the package would load the runtime first
               f"spec = importlib.util.spec_from_file_location('c', {str(PACKAGE / '_cudart.py')!r})\n"
               "c = importlib.util.module_from_spec(spec); spec.loader.exec_module(c)\n"
               "c.SONAME = 'libnone.so.13'\nc.load()")
    assert done.returncode != 0
    assert "tessera needs the CUDA runtime, libnone.so.13" in done.stderr and "pip install nvidia-cuda-runtime" in done.stderr


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="torch is here")
def test_without_torch_its_module_says_so():
    done = run("import tessera.torch")
    assert done.returncode != 0
    assert "tessera.torch needs PyTorch 2.10 or later, which is not installed" in done.stderr


def test_a_program_may_end_with_arrays():
    done = run("import numpy, tessera\na = tessera.asarray(numpy.ones((64, 64)), 'bf16')\nb = tessera.gemm(a, a)\nprint('end')")
    assert done.returncode == 0 and done.stdout == "end\n", done.stderr
