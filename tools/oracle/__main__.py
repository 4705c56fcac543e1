"""`python -m tools.oracle` builds the oracle, checks it with kept vectors, and explores with it."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from tools.oracle import explore, selection
from tools.oracle.build import BuildError, build, releases
from tools.oracle.check import compare, read_vectors, version_of
from tools.oracle.process import Oracle, OracleError

VECTORS = Path(__file__).parents[2] / "tests" / "conformance" / "vectors"
EXAMPLES_SHOWN = 10

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
app.command("explore")(explore.run)


@app.command("build")
def build_all(
    versions: Annotated[list[str] | None, typer.Argument(help="All, if none is given.")] = None,
    *,
    jobs: Annotated[int, typer.Option(help="Packages that Go compiles at the same time.")] = 1,
) -> None:
    """Build the oracle, once for each version of Kubernetes."""
    for version in versions or releases():
        print(f"{version}: {build(version, jobs=jobs)}", flush=True)


@app.command()
def check(
    files: Annotated[list[Path], typer.Argument(help="Vectors: JSON Lines, also gzipped.")],
    *,
    version: Annotated[
        str | None, typer.Option(help="Compare with this version, whatever the file's name says.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Cases answered at once.")] = os.cpu_count() or 1,
) -> None:
    """Compare the oracle's answers with those that vectors expect."""
    differ = False
    for path in files:
        asked = version or version_of(path)
        with Oracle(asked, workers=workers) as oracle:
            comparison = compare(read_vectors(path), oracle)
        differ |= comparison.equal < comparison.asked
        print(
            f"{path.name}: {comparison.equal} of {comparison.asked} as {asked} answers", flush=True
        )
        for name, count in sorted(comparison.by_field.items()):
            print(f"  {name}: {count} cases")
        for example in comparison.examples[:EXAMPLES_SHOWN]:
            print(f"    {example}")
    sys.exit(differ)


@app.command("select")
def select_vectors(
    versions: Annotated[list[str] | None, typer.Argument(help="All, if none is given.")] = None,
    *,
    seed: Annotated[int, typer.Option(help="Of the fresh cases.")] = selection.SEED,
    cases: Annotated[int, typer.Option(help="Fresh cases of each family.")] = selection.DRAWN,
    workers: Annotated[int, typer.Option(help="Cases answered at once.")] = os.cpu_count() or 1,
) -> None:
    """Choose the kept vectors of each version from fresh cases and from those of 1.35."""
    given = list(selection.read(sorted(VECTORS.glob("*_public.jsonl.gz"))))
    for version in versions or releases():
        pool = [*given, *selection.drawn(seed, cases)]
        answered = selection.answered(version, pool, workers)
        known = [case for case in answered if selection.is_small(case)]
        kept = selection.select(known, selection.KEPT)
        names = {case["name"] for case in kept}
        others = [case for case in known if case["name"] not in names]
        more = selection.select(others, selection.MORE)
        for part, name in ((kept, "vectors"), (more, "more_vectors")):
            path = VECTORS / f"{name}_{version}.jsonl.gz"
            selection.write(part, path)
            print(f"{path.name}: {len(part)} of {len(known)} cases, {path.stat().st_size} bytes")


if __name__ == "__main__":
    try:
        app(prog_name="python -m tools.oracle")
    except (BuildError, OracleError) as error:
        sys.exit(str(error))
