"""Parsing text edge lists into arrays: one pass over the bytes of a block of whole lines.

A block must end with a newline, so that no inner loop needs a bounds check. The fields of a line are separated by
blanks (runs of spaces or tabs) or by one comma or semicolon with blanks around it. A carriage return before the
newline is ignored, and so are empty lines and lines that start with a comment character. Any of these ends an
integer; other fields end only at the file's `separator`, so that "New York,Boston" is two fields.

Numbers are read exactly: an id that does not fit 64 bits is an error, and the C library reads a decimal that
double arithmetic cannot round correctly. A whole weight is also read as an integer; the type of the array of weights
says which of the two is kept.
"""
# ruff: noqa: SIM109, SIM110 - comparisons spelt out compile to fewer branches than a search in a tuple

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numba import float64, int64, intp, types, uint8, uint64
from numba.extending import overload

from isthmus.kernels.compile.kernel import c_function, inline, kernel

OK, WIDE, BAD_SOURCE, BAD_TARGET, BAD_WEIGHT, NEGATIVE, NOT_FINITE, TOO_BIG, MISSING, LONE_RETURN = range(10)
# What occurred in a block: bits of the `flags` value.
SAW_NEGATIVE_ID, SAW_HUGE_ID, SAW_FRACTION, SAW_LARGE_WEIGHT = 1, 2, 4, 8

NEWLINE, RETURN, TAB, SPACE, COMMA, SEMICOLON, QUOTE = 10, 13, 9, 32, 44, 59, 34
POWERS_OF_TEN = 10.0 ** np.arange(23)  # exact in double precision
LAST_EXACT = 1 << 53
INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1

strtod_l = c_function("strtod_l", float64, intp, intp, intp)


def c_locale() -> int:
    """The "C" locale, so that the decimal point is a point in every application."""
    libc = ctypes.CDLL(None)
    libc.newlocale.restype = ctypes.c_void_p
    return int(libc.newlocale(0x1FBF, b"C", None))  # LC_ALL_MASK


@inline
def is_blank(c: Any) -> Any:
    return c == SPACE or c == TAB


@inline
def ends_field(c: Any) -> Any:
    return c == TAB or c == SPACE or c == COMMA or c == SEMICOLON or c == NEWLINE or c == RETURN


@inline
def next_field(text: Any, p: Any) -> Any:
    """The start of the next field, or where the line ends."""
    while is_blank(text[p]):
        p += 1
    if text[p] == COMMA or text[p] == SEMICOLON:
        p += 1
        while is_blank(text[p]):
            p += 1
    return p


@inline
def next_text_field(text: Any, p: Any, separator: Any) -> Any:
    """The start of the next field that may hold any text but `separator`, or where the line ends."""
    while is_blank(text[p]):
        p += 1
    if text[p] == separator:
        p += 1
        while is_blank(text[p]):
            p += 1
    return p


@inline
def field_end(text: Any, p: Any, separator: Any) -> Any:
    """(start, end, after) of the text of a field, without the quotes around it. end < start: no closing quote."""
    if text[p] == QUOTE:
        q = p + 1
        while text[q] != QUOTE:
            if text[q] == NEWLINE:
                return p + 1, p, q
            q += 1
        after = q + 1
        while text[after] == SPACE and separator != SPACE:
            after += 1
        return p + 1, q, after
    q = p
    while (
        text[q] != separator
        and text[q] != NEWLINE
        and text[q] != RETURN
        and not (separator == SPACE and text[q] == TAB)
    ):
        q += 1
    end = q
    while end > p and is_blank(text[end - 1]):
        end -= 1
    return p, end, q


@inline
def ends_text_field(text: Any, p: Any, separator: Any) -> Any:
    c = text[p]
    return c == separator or c == NEWLINE or c == RETURN or (separator == SPACE and c == TAB)


@inline
def lone_return(text: Any, p: Any) -> Any:
    """Whether there is a carriage return inside a line: old Mac line ends, or damage."""
    return text[p] == RETURN and text[p + 1] != NEWLINE and text[p + 1] != RETURN


@inline
def read_integer(text: Any, p: Any) -> Any:
    """(magnitude, negative, end); end is `p` when there are no digits, -1 when it exceeds 64 bits."""
    negative = text[p] == 45
    q = p + 1 if negative else p
    value = uint64(0)
    first = q
    while True:
        digit = uint8(text[q] - uint8(48))
        if digit > 9:
            break
        value = value * uint64(10) + uint64(digit)
        q += 1
    if q == first:
        return value, negative, p
    if q - first > 19:
        value = uint64(0)
        for r in range(first, q):
            digit = uint8(text[r] - uint8(48))
            if value > uint64(1844674407370955161) or (value == uint64(1844674407370955161) and digit > 5):
                return value, negative, -1
            value = value * uint64(10) + uint64(digit)
    if negative and value > uint64(1 << 63):
        return value, negative, -1
    return value, negative, q


@inline
def read_number(text: Any, p: Any, locale: Any) -> Any:
    """(value, is_integer, the integer, end) of a decimal number; end is `p` when there is none.

    A whole number beyond 64 bits counts as a fraction: no integer type holds it.
    """
    q = p
    negative = text[q] == 45
    if negative or text[q] == 43:
        q += 1
    mantissa = uint64(0)
    digits = 0
    scale = 0
    integer = True
    while True:
        digit = uint8(text[q] - uint8(48))
        if digit <= 9:
            digits += 1
            mantissa = mantissa * uint64(10) + uint64(digit)
            scale -= 0 if integer else 1
        elif text[q] == 46 and integer:
            integer = False
        else:
            break
        q += 1
    if digits == 0:
        return 0.0, False, int64(0), p
    if text[q] == 101 or text[q] == 69:  # exponent
        integer = False
        r = q + 1
        down = text[r] == 45
        if down or text[r] == 43:
            r += 1
        first = r
        exponent = 0
        while uint8(text[r] - uint8(48)) <= 9:
            exponent = min(exponent * 10 + (text[r] - 48), 100_000)
            r += 1
        if r == first:
            return 0.0, False, int64(0), p
        q = r
        scale += -exponent if down else exponent
    if digits <= 19 and mantissa <= uint64(LAST_EXACT) and -22 <= scale <= 22:
        value = float64(mantissa)
        if scale < 0:
            value /= POWERS_OF_TEN[-scale]
        else:
            value *= POWERS_OF_TEN[scale]
        if negative:
            value = -value
    else:
        value = strtod_l(text.ctypes.data + p, 0, locale)
    if abs(value) < LAST_EXACT:
        whole = int64(value)
    else:
        integer &= digits <= 19 and mantissa <= uint64(INT64_MAX)  # more than 19 digits may have overflowed
        whole = -int64(mantissa) if negative else int64(mantissa)
    return value, integer, whole, q


def keep_weight(weights: Any, e: Any, value: Any, whole: Any) -> Any:
    """Write a weight into an array of float64 or int64; None: nowhere."""
    raise NotImplementedError("compiled")


@overload(keep_weight, strict=False)  # not strict: the functions have no annotations
def keep_weight_compiled(weights: Any, e: Any, value: Any, whole: Any) -> Any:
    if not isinstance(weights, types.Array):
        return lambda weights, e, value, whole: None
    if isinstance(weights.dtype, types.Float):

        def keep(weights, e, value, whole):  # type: ignore[no-untyped-def]
            weights[e] = value
    else:

        def keep(weights, e, value, whole):  # type: ignore[no-untyped-def]
            weights[e] = whole

    return keep


@inline
def not_a_number_word(text: Any, p: Any) -> Any:
    """Whether the field at `p` spells nan or inf(inity), with or without a sign."""
    if text[p] == 45 or text[p] == 43:
        p += 1
    # One letter at a time: nothing may be read past the newline that ends the block.
    if text[p] | 32 == 110:
        return text[p + 1] | 32 == 97 and text[p + 2] | 32 == 110
    return text[p] | 32 == 105 and text[p + 1] | 32 == 110 and text[p + 2] | 32 == 102


@inline
def read_weight(text: Any, p: Any, allow_negative: Any, locale: Any, separator: Any) -> Any:
    """(status, value, is_integer, the integer, end) of a weight field."""
    value, integer, whole, q = read_number(text, p, locale)
    # A comma that does not separate fields is a decimal comma, which is not supported.
    if q == p or not ends_field(text[q]) or (text[q] == COMMA and separator != COMMA):
        if not_a_number_word(text, p):
            return NOT_FINITE, 0.0, False, whole, q
        return BAD_WEIGHT, 0.0, False, whole, q
    if not np.isfinite(value):
        return NOT_FINITE, 0.0, False, whole, q
    if value < 0 and not allow_negative:
        return NEGATIVE, 0.0, False, whole, q
    return OK, value, integer, whole, q


@inline
def skip_line(text: Any, p: Any) -> Any:
    while text[p] != NEWLINE:
        p += 1
    return p + 1


@inline
def is_comment(c: Any, comments: Any) -> Any:
    for k in range(comments.size):
        if c == comments[k]:
            return True
    return False


@kernel
def count_lines(text: Any) -> Any:
    lines = 0
    for p in range(text.size):
        lines += text[p] == NEWLINE
    return lines


@kernel
def parse_integer_edges(
    text: Any,
    columns: Any,
    separator: Any,
    comments: Any,
    allow_negative: Any,
    locale: Any,
    sources: Any,
    targets: Any,
    weights: Any,
) -> Any:
    """Fill `sources`, `targets` (uint32 or uint64) and, unless None, `weights` from whole lines of `text`.

    `columns` holds the field numbers of source, target and weight (-1: none); `weights` is float64 or int64. Returns
    (status, edges, where, flags); `where` is the start of the offending line. WIDE: an id does not fit the arrays'
    type.
    """
    limit = uint64(0xFFFFFFFF) if sources.itemsize == 4 else uint64(0xFFFFFFFFFFFFFFFF)
    narrow = sources.itemsize == 4
    source_column, target_column, weight_column = columns[0], columns[1], columns[2]
    last_column = max(source_column, target_column, weight_column)
    p = 0
    edges = 0
    flags = 0
    while p < text.size:
        c = text[p]
        if c == NEWLINE or c == RETURN or is_blank(c):
            p += 1
            continue
        line = p
        if is_comment(c, comments):
            p = skip_line(text, p)
            continue
        for column in range(last_column + 1):
            if column > 0:
                p = next_field(text, p)
            if text[p] == NEWLINE or text[p] == RETURN:
                return MISSING, edges, line, flags
            if column == source_column or column == target_column:
                value, negative, q = read_integer(text, p)
                if q == -1:
                    return TOO_BIG, edges, line, flags
                if q == p or not ends_field(text[q]):
                    return (BAD_SOURCE if column == source_column else BAD_TARGET), edges, line, flags
                if negative and value:
                    if narrow:
                        return WIDE, edges, line, flags
                    flags |= SAW_NEGATIVE_ID
                    value = uint64(0) - value
                elif value > limit:
                    return WIDE, edges, line, flags
                elif value >> uint64(63):
                    flags |= SAW_HUGE_ID
                if column == source_column:
                    sources[edges] = value
                else:
                    targets[edges] = value
                p = q
            elif column == weight_column:
                if weights is not None:  # otherwise nothing of this is compiled
                    status, weight, integer, whole, p = read_weight(text, p, allow_negative, locale, separator)
                    if status != OK:
                        return status, edges, line, flags
                    if not integer:
                        flags |= SAW_FRACTION
                    elif weight > INT32_MAX or weight < -INT32_MAX:
                        flags |= SAW_LARGE_WEIGHT
                    keep_weight(weights, edges, weight, whole)
            else:
                start, end, p = field_end(text, p, separator)
                if end < start or not ends_text_field(text, p, separator):
                    return BAD_TARGET, edges, line, flags
        if lone_return(text, p):
            return LONE_RETURN, edges, line, flags
        p = skip_line(text, p)
        edges += 1
    return OK, edges, p, flags


@kernel
def split_string_edges(
    text: Any, columns: Any, separator: Any, comments: Any, allow_negative: Any, locale: Any, spans: Any, weights: Any
) -> Any:
    """Like parse_integer_edges, for ids that are text: `spans[e]` = source start, end, target start, end."""
    source_column, target_column, weight_column = columns[0], columns[1], columns[2]
    last_column = max(source_column, target_column, weight_column)
    p = 0
    edges = 0
    flags = 0
    while p < text.size:
        c = text[p]
        if c == NEWLINE or c == RETURN or is_blank(c):
            p += 1
            continue
        line = p
        if is_comment(c, comments):
            p = skip_line(text, p)
            continue
        for column in range(last_column + 1):
            if column > 0:
                p = next_text_field(text, p, separator)
            if text[p] == NEWLINE or text[p] == RETURN:
                return MISSING, edges, line, flags
            if column == weight_column:
                if weights is not None:
                    status, weight, integer, whole, p = read_weight(text, p, allow_negative, locale, separator)
                    if status != OK:
                        return status, edges, line, flags
                    if not integer:
                        flags |= SAW_FRACTION
                    elif weight > INT32_MAX or weight < -INT32_MAX:
                        flags |= SAW_LARGE_WEIGHT
                    keep_weight(weights, edges, weight, whole)
            else:
                start, end, p = field_end(text, p, separator)
                needed = column == source_column or column == target_column
                if end < start or not ends_text_field(text, p, separator) or (end == start and needed):
                    return (BAD_SOURCE if column == source_column else BAD_TARGET), edges, line, flags
                if column == source_column:
                    spans[edges, 0], spans[edges, 1] = start, end
                elif column == target_column:
                    spans[edges, 2], spans[edges, 3] = start, end
        if lone_return(text, p):
            return LONE_RETURN, edges, line, flags
        p = skip_line(text, p)
        edges += 1
    return OK, edges, p, flags


@kernel
def blank_missing(text: Any, columns: Any, separator: Any, comments: Any) -> Any:
    """Write blanks over the lines whose source or target is an empty field; returns how many. Lines with too few fields
    stay.
    """
    source_column, target_column = columns[0], columns[1]
    p = 0
    blanked = 0
    while p < text.size:
        c = text[p]
        if c == NEWLINE or c == RETURN or is_blank(c):
            p += 1
            continue
        line = p
        if is_comment(c, comments):
            p = skip_line(text, p)
            continue
        missing = False
        for column in range(max(source_column, target_column) + 1):
            if column > 0:
                if text[p] == NEWLINE or text[p] == RETURN:
                    break
                p = next_text_field(text, p, separator)
            needed = column == source_column or column == target_column
            if text[p] == NEWLINE or text[p] == RETURN:
                missing = needed and separator != SPACE
                break
            start, end, p = field_end(text, p, separator)
            if end < start:
                break
            missing = missing or (needed and end == start)
        after = skip_line(text, line)
        if missing:
            blanked += 1
            for q in range(line, after - 1):
                text[q] = SPACE
        p = after
    return blanked


@kernel
def copy_spans(text: Any, starts: Any, ends: Any, offsets: Any, out: Any) -> Any:
    """Copy the spans of `text` one after the other; `offsets` says where each begins in `out`."""
    for i in range(starts.size):
        at = offsets[i]
        for p in range(starts[i], ends[i]):
            out[at] = text[p]
            at += 1


@kernel
def count_fields(text: Any) -> Any:
    """An upper bound of the fields in `text`."""
    fields = 1
    for p in range(1, text.size):
        fields += ends_field(text[p]) and not ends_field(text[p - 1])
    return fields


@kernel
def parse_adjacency(text: Any, comments: Any, sources: Any, targets: Any, alone: Any) -> Any:
    """Parse lines `source target ...` into edges; `alone` receives sources without a target.

    Returns (status, edges, alone, where, flags).
    """
    p = 0
    edges = single = flags = 0
    while p < text.size:
        c = text[p]
        if c == NEWLINE or c == RETURN or is_blank(c):
            p += 1
            continue
        line = p
        if is_comment(c, comments):
            p = skip_line(text, p)
            continue
        first = uint64(0)
        column = 0
        while text[p] != NEWLINE and text[p] != RETURN:
            value, negative, q = read_integer(text, p)
            if q == -1:
                return TOO_BIG, edges, single, line, flags
            if q == p or not ends_field(text[q]):
                return BAD_SOURCE, edges, single, line, flags
            if negative and value:
                flags |= SAW_NEGATIVE_ID
                value = uint64(0) - value
            elif value >> uint64(63):
                flags |= SAW_HUGE_ID
            if column == 0:
                first = value
            else:
                sources[edges] = first
                targets[edges] = value
                edges += 1
            column += 1
            p = next_field(text, q)
        if lone_return(text, p):
            return LONE_RETURN, edges, single, line, flags
        if column == 1:
            alone[single] = first
            single += 1
        p = skip_line(text, p)
    return OK, edges, single, p, flags
