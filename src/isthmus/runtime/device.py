"""Devices by name: this machine, or a modelled one."""

from __future__ import annotations

from isthmus.errors import OptionError
from isthmus.link.device import PREFIX, Device, builtin, find

DEVICES = ("auto", "cpu")  # and model:NAME


def device_of(text: str) -> Device | None:
    """The modelled device of that name; None: this machine."""
    if isinstance(text, str) and text.startswith(PREFIX):
        return find(text)
    if text not in DEVICES:
        raise OptionError(f"device: expected one of {', '.join(DEVICES)} or {PREFIX}NAME, got {text!r}")
    return None


def name_of(text: str, model: Device | None) -> str:
    """The device's name in a summary: for a built-in device as the user gave it, otherwise as the device's file states it."""
    if model is None:
        return "cpu"
    return text if text.removeprefix(PREFIX) in builtin() else f"{PREFIX}{model.name}"
