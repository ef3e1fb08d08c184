"""A circuit: the voltages in a sheet of resistors between two contacts, and its resistance from corner to corner."""

import tempfile
from pathlib import Path

import isthmus as ist


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        sheet = ist.generate("grid", Path(folder) / "sheet.isthmus", rows=60, columns=60, weights="0.5:2.0", seed=2)
        first, last = 0, sheet.vertices - 1
        result = ist.circuit(sheet, fixed={first: 5.0, last: 0.0}, memory="10%", policy="filter")
        facts = result.summary()["result"]
        print(
            f"the middle is at {result.values[sheet.vertices // 2 + 30]:.3f} V, to within {facts['error_bound']:.1e} V"
        )
        print(
            f"{result['current'][first]:.4f} A flow, so the sheet has {5.0 / result['current'][first]:.4f} ohms from "
            f"corner to corner"
        )
        injected = ist.circuit(sheet, fixed={last: 0.0}, currents={first: 1.0})
        print(f"one ampere raises the first corner to {injected.values[first]:.4f} V: the same number")
        sheet.close()


if __name__ == "__main__":
    main()
