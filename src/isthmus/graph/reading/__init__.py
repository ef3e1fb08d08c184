"""Parts that several formats share: tables, text with counts, binary lists, Parquet pages, Arrow messages.

`graph/formats/` and the input of streams import it. Begin with `format.py`.
"""
