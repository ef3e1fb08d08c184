"""The device of examples/plugin, which another package brings: it records every read of edges."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from isthmus.devices.choose import DEVICES

FILE = Path(__file__).parent.parent / "examples" / "plugin" / "tiny_device.py"


def load() -> Any:
    spec = importlib.util.spec_from_file_location("tiny_device", FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Recorder


Recorder = load()
DEVICES["recorder"] = Recorder  # as its entry point does once the package is installed
