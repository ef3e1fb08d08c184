"""What each recipe is, in few words. Help texts are made of these: they must not wait until a compiler is loaded."""

from __future__ import annotations

WORDS = {
    "filter": "whole partitions",
    "subway": "packed lists, worked on again and again",
    "emogi": "single blocks",
    "unified": "pages that stay near",
    "grus": "pages, prefetched first",
    "scaph": "by the value of partitions",
    "hytgraph": "by its cost formulas, with a cache of hot vertices",
    "auto": "by what this link was measured to cost",
}
