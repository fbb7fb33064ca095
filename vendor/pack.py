"""Put what npm fetched into the package: compressed, with licences and digests."""

import gzip
import hashlib
import json
from pathlib import Path

HERE = Path(__file__).parent
TARGET = HERE.parent / "service" / "web" / "vendored"
SCRIPTS = ("vega", "vega-lite", "vega-embed")


def main() -> None:
    """Write each script, the licences, and one list of what the scripts are."""
    known = {}
    for name in SCRIPTS:
        package = HERE / "node_modules" / name
        about = json.loads((package / "package.json").read_text(encoding="utf-8"))
        script = (package / "build" / f"{name}.min.js").read_bytes()
        (TARGET / f"{name}.js.gz").write_bytes(gzip.compress(script, 9, mtime=0))
        known[name] = {
            "version": about["version"],
            "license": about["license"],
            "sha256": hashlib.sha256(script).hexdigest(),
        }
    (TARGET / "LICENSES.txt").write_text(_licences(), encoding="utf-8")
    listed = json.dumps(known, indent=2, sort_keys=True) + "\n"
    (TARGET / "scripts.json").write_text(listed, encoding="utf-8")


def _licences() -> str:
    """Return the licences of the scripts and of all that they may hold, each text once."""
    holders: dict[str, list[str]] = {}
    for path in sorted((HERE / "node_modules").glob("**/package.json")):
        text = next(iter(sorted(path.parent.glob("LICEN[SC]E*"))), None)
        about = json.loads(path.read_text(encoding="utf-8"))
        if text is not None and "version" in about:
            told = f"{about['name']} {about['version']} ({about.get('license', 'see below')})"
            holders.setdefault(text.read_text(encoding="utf-8").strip(), []).append(told)
    return "\n\n".join(f"{', '.join(names)}\n\n{text}" for text, names in holders.items()) + "\n"


if __name__ == "__main__":
    main()
