"""Times of transfers, packing and kernels on a modelled device, from the figures of `figures.py`.

    bulk         copies x transfer_seconds + bytes / bandwidth
    direct       sum over request sizes s of requests(s) x s / direct(s)
    paged        the longer of  bytes / (peak_share x bandwidth)
                 and            batches x fault_seconds + migrations x transfer_seconds + bytes / bandwidth,
                 + bytes evicted to the host / back_bandwidth
    compaction   (fetched + packed bytes) / (2 x pack_bandwidth x cores)
    kernel       launches x launch_seconds + edges x (entry_bytes + update_bytes) / (push_share x near bandwidth)
    scan         launches x launch_seconds + bytes / near bandwidth
    copy_back    copies x copy_seconds + bytes / back_bandwidth

Bulk and direct are HyTGraph's formulas (1) and (3) (Wang et al., ICDE 2023, section V), in seconds instead of round
trips. The size of every request is known here; the paper scales the round trip by the share of active edges instead.
Compaction is the second term of (2), whose throughput the paper does not give: host memory is fetched in whole pieces
of `fetch_bytes`, so short lists far apart cost more than their bytes; if all lists are packed, it is bytes /
pack_bandwidth. A fault costs a fixed time for any size (Grus, Wang et al., TACO 2021, section 2). Faults are handled in
batches, and even long migrations stay below the peak that EMOGI measured. A kernel pays for each edge its bytes and one
random access. Compaction is host time, kernel and scan are device time, the rest is link time. Arguments may be arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.devices.model.figures import GpuFigures
from isthmus.link.link import Array


def bulk(device: GpuFigures, bytes: Any, copies: Any = 1) -> Any:
    """Seconds for explicit copies to the device."""
    return copies * device.link.transfer_seconds + bytes / device.link.bandwidth


def direct(device: GpuFigures, requests: Array) -> Any:
    """Seconds for a kernel's requests to far memory; the last dimension of `requests` counts them by number of
    sectors.
    """
    link = device.link
    sizes = link.sector_bytes * np.arange(1, len(link.direct) + 1)
    return requests @ (sizes / np.array(link.direct))


def paged(device: GpuFigures, bytes: Any, batches: Any, migrations: Any, evicted: Any = 0) -> Any:
    """Seconds for pages migrated by faults; `evicted` bytes were written back to the host to free memory."""
    link, managed = device.link, device.managed
    least = bytes / (managed.peak_share * link.bandwidth)
    handled = batches * managed.fault_seconds + bulk(device, bytes, migrations)
    return np.maximum(least, handled) + evicted / link.back_bandwidth


def compaction(device: GpuFigures, fetched: Any, packed: Any, cores: int | None = None) -> Any:
    """Seconds for packing lists on the host, which fetches more bytes than it packs; uses all cores unless told
    otherwise.
    """
    return (fetched + packed) / (2 * device.host.pack_bandwidth * (cores or device.host.cores))


def kernel(device: GpuFigures, edges: Any, entry_bytes: int, launches: Any = 1) -> Any:
    """Seconds for a kernel that pushes along near edges of `entry_bytes` each."""
    near = device.near
    return launches * near.launch_seconds + edges * (entry_bytes + near.update_bytes) / (
        near.push_share * near.bandwidth
    )


def scan(device: GpuFigures, bytes: Any, launches: Any = 1) -> Any:
    """Seconds for a kernel that scans near memory once, such as one that counts active vertices."""
    return launches * device.near.launch_seconds + bytes / device.near.bandwidth


def copy_back(device: GpuFigures, bytes: Any, copies: Any = 1) -> Any:
    """Seconds for a copy to the host that the host waits for, such as the frontier."""
    return copies * device.link.copy_seconds + bytes / device.link.back_bandwidth
