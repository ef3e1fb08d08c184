"""Install this package into a temporary folder and use what it adds, from Python and from the shell.

python examples/plugin/use.py
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
IN_PYTHON = """
import isthmus as ist
paths = ist.read("walks.paths", closed=True)
print("read:", paths.vertices, "vertices,", paths.edges, "edges")
graph = ist.open("rmat.isthmus")
print("most reliable paths:", ist.reliability(graph, 0, memory="30%").summary()["result"])
with graph.session() as session:
    print("in a session:", session.reliability(0, least=0.5).summary()["result"])
ours, theirs = (ist.bfs(graph, 0, policy=policy, memory="30%") for policy in ("filter", "pairs"))
assert (ours.filled() == theirs.filled()).all()
print("bfs by pairs:", ", ".join(theirs.summary()["engines"]))
recorded = ist.bfs(graph, 0, policy="filter", memory="30%", device="recorder:reads.csv")
assert (ours.filled() == recorded.filled()).all()
print("recorded:", sum(1 for line in open("reads.csv")) > 0, "on", recorded.summary()["device"])
theirs.report("pairs.html")
print("drawn in its colour:", "#aa4499" in open("pairs.html").read())
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        site, work = folder / "site", folder / "work"
        work.mkdir()
        install(site)
        print("installed:", ", ".join(sorted(path.stem for path in site.glob("tiny_*.py"))))
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")]),
            "COLUMNS": "200",
        }

        def call(*words: str) -> str:
            return subprocess.run(
                [sys.executable, *words], cwd=work, env=environment, check=True, stdout=subprocess.PIPE, text=True
            ).stdout

        def shell(*words: str) -> str:
            return call("-m", "isthmus.cli.main", *words)

        (work / "walks.paths").write_text("1 > 2 > 3\n7 > 3\n")
        shell("generate", "rmat", "-o", "rmat.isthmus", "--scale", "12", "--weights", "0.0:1.0")
        print(call("-c", IN_PYTHON), end="")
        ingested = json.loads(
            shell("ingest", "walks.paths", "-o", "walks.isthmus", "--format-option", "closed=true", "--json")
        )
        print("ingested by the shell:", ingested["edges"], "edges")
        (work / "walks.txt").write_text("1-2-3\n")
        named = json.loads(
            shell(
                "ingest", "walks.txt", "-o", "named.isthmus", "--format", "tiny", "--format-option", "arrow=-", "--json"
            )
        )
        print("ingested by name:", named["edges"], "edges")
        compared = json.loads(
            shell(
                "compare",
                "bfs",
                "rmat.isthmus",
                "--source",
                "0",
                "--policies",
                "emogi,pairs",
                "--memory",
                "30%",
                "--rounds=1",
                "--json",
            )
        )
        print("compared:", ", ".join(f"{run['recipe']} by {', '.join(run['engines'])}" for run in compared["runs"]))
        planned = json.loads(
            shell("plan", "bfs", "rmat.isthmus", "--source", "0", "--policy", "pairs", "--memory", "30%", "--json")
        )
        print("planned:", ", ".join(planned["pass"]))
        ran = json.loads(
            shell(
                "run", "reliability", "rmat.isthmus", "--source", "0", "--least", "0.5", "--policy", "pairs", "--json"
            )
        )
        print("run by the shell:", ran["result"])
        print("devices:", "the processor, with a record of every read" in shell("info", "--devices"))
        print("help lists reliability:", "reliability" in shell("run", "--help"))
        print("help lists pairs:", "pairs (from isthmus-tiny)" in shell("run", "bfs", "--help"))


def install(site: Path) -> None:
    """Nothing is downloaded: the build tool is taken from this environment, and dependencies are there already."""
    pip = [sys.executable, "-m", "pip"]
    words = ["install", "--quiet", "--no-build-isolation", "--no-deps", "--no-index", "--target", str(site), str(HERE)]
    subprocess.run([*pip, *words], check=True)


if __name__ == "__main__":
    main()
