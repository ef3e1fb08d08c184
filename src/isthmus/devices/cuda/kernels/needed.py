"""Which kernels a run needs beside those of its program, and how many of them this process has yet to compile.

numba-cuda compiles a kernel when it is first launched, in every process anew. To count, nothing of CUDA is imported.
"""

from __future__ import annotations

from isthmus.devices.cuda.kernels import lists, ranking, rows
from isthmus.devices.cuda.kernels.head import known

ALWAYS = ((rows, ("fill", "sort_range", "sort_rows", "count_activity", "pack_marks")),)
WITH_A_CACHE = (  # where not all edges are near, and recipes keep lists there
    *ALWAYS,
    (rows, ("mark_others",)),
    (lists, ("sort_held", "sort_chosen", "sort_chosen_range", "keep", "take", "put", "copy_lists")),
    (lists, ("find_staying", "place_staying", "find_coming", "place_coming")),
    (ranking, ("use_rows", "use_marked", "end_period", "count_entries", "find_level", "entries_on_level")),
    (ranking, ("mark_candidates", "take_space", "count_new")),
)


def uncompiled(all_near: bool) -> int:
    """How many kernels are compiled before a run has all of them; `all_near`: it keeps all edges near."""
    count = 0
    for text, names in ALWAYS if all_near else WITH_A_CACHE:
        module = known(text.NAME, text.TEXT)
        # A kernel of the simulator has no overloads: nothing is compiled.
        count += sum(module is None or not getattr(getattr(module, name), "overloads", True) for name in names)
    return count
