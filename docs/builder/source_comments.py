"""Words about the fields of a class: the comments behind them in its source.

    memory: str | int | None  # near memory: bytes, "2GB", or ...

Classes of plain data explain their fields in this way, and Python forgets comments, so the source is read again.
"""

from __future__ import annotations

import ast
import inspect
import io
import textwrap
import tokenize


def fields_of(cls: type) -> dict[str, tuple[str, str]]:
    """(type, comment) of the fields that have a comment, by name: those of `cls` itself, in order."""
    source = textwrap.dedent(inspect.getsource(cls))
    comments = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    (body,) = ast.parse(source).body
    assert isinstance(body, ast.ClassDef)
    found = {}
    for line in body.body:
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and line.end_lineno in comments:
            comment = comments[line.end_lineno]
            if not comment.startswith(("noqa", "type:")):
                found[line.target.id] = ast.unparse(line.annotation), comment
    return found
