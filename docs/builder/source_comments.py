"""Words about the fields of a class: the help that it declares, or the comments behind fields in its source.

    memory: Annotated[str | int | None, RunOption("Near memory: 2GB, or ...")]
    header: bool = False  # the first line of a text has the names of the columns

Python forgets comments, so the source is read again.
"""

from __future__ import annotations

import ast
import inspect
import io
import textwrap
import tokenize


def fields_of(cls: type) -> dict[str, tuple[str, str]]:
    """(type, words) of the fields that have words, by name: those of `cls` itself, in order."""
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
        if not isinstance(line, ast.AnnAssign) or not isinstance(line.target, ast.Name):
            continue
        if isinstance(line.annotation, ast.Subscript) and ast.unparse(line.annotation.value) == "Annotated":
            assert isinstance(line.annotation.slice, ast.Tuple)
            help = cls.__annotations__[line.target.id].__metadata__[0].help.replace(": {recipes}", "")
            if help:
                found[line.target.id] = ast.unparse(line.annotation.slice.elts[0]).strip("'"), help
        elif line.end_lineno in comments:
            comment = comments[line.end_lineno]
            if not comment.startswith(("noqa", "type:")):
                found[line.target.id] = ast.unparse(line.annotation), comment
    return found
