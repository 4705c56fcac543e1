"""`python -m tools.manifests.sources FOLDER` reads the fields and gates of Kubernetes anew.

The folder has the Go modules `api` and `apimachinery` (v0.35.4, v0.36.3, v0.37.2) and `kubernetes`
(v1.35.4, v1.36.3, v1.37.2), as `$(go env GOMODCACHE)/k8s.io` has after `go mod download`.
"""

import json
import sys
from pathlib import Path

from tools.manifests import gates, versions
from tools.manifests.places import PLACES


def main(modules: Path) -> None:
    """Write both files of what was read."""
    types = [place.type_name for place in PLACES]
    versions.FILE.write_text(json.dumps(versions.gathered(modules, types), indent=1) + "\n")
    gates.FILE.write_text(json.dumps(gates.gathered(modules, types), indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
