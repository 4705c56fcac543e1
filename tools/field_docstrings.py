"""The texts below the fields of a class in its source, which Python itself does not keep."""

import ast
import inspect
import sys
from itertools import pairwise


def field_docstrings(kind: type) -> dict[str, str]:
    """Return what the text below each annotated field of a class says, on one line."""
    tree = ast.parse(inspect.getsource(sys.modules[kind.__module__]))
    body = next(
        each.body
        for each in tree.body
        if isinstance(each, ast.ClassDef) and each.name == kind.__name__
    )
    return {
        field.target.id: " ".join(ast.literal_eval(text.value).split())
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
    }
