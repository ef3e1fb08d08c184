"""Where a list cache lies on a GPU: its counts and, of contiguous lists, the index are in near memory."""

from __future__ import annotations

from functools import partial

from isthmus.cache.list_cache import Place
from isthmus.devices.cuda.contiguous import CudaContiguous
from isthmus.devices.cuda.link import CudaLink
from isthmus.devices.cuda.ranking import CudaCounts


def on_card(link: CudaLink | None = None) -> Place:
    """For `ListCache`. A cache whose lists are contiguous needs a link, to take memory."""
    return Place(counts=CudaCounts, contiguous=partial(CudaContiguous, link), home=None)
