"""The stamp that tells whether the bundled scripts belong to their sources."""

from pathlib import Path

from app.assets import STAMP_PATH, built_stamp, source_stamp, staleness


def sources(folder: Path) -> Path:
    (folder / "js").mkdir()
    (folder / "vendor").mkdir()
    (folder / "package.json").write_text("{}")
    (folder / "js" / "app.js").write_text("one()")
    return folder


def build(static: Path) -> None:
    (static / STAMP_PATH).write_text(f"{source_stamp(static)}\n")


def test_assets_that_were_never_built_say_what_to_run(tmp_path: Path) -> None:
    assert "pip install" in (staleness(sources(tmp_path)) or "")


def test_built_assets_are_fresh_until_a_source_changes(tmp_path: Path) -> None:
    static = sources(tmp_path)
    build(static)
    assert staleness(static) is None
    (static / "js" / "app.js").write_text("two()")
    assert "older" in (staleness(static) or "")
    build(static)
    assert staleness(static) is None


def test_a_renamed_source_counts_as_changed(tmp_path: Path) -> None:
    static = sources(tmp_path)
    before = source_stamp(static)
    (static / "js" / "app.js").rename(static / "js" / "apps.js")
    assert source_stamp(static) != before


def test_a_wheel_without_sources_is_fresh_as_it_is(tmp_path: Path) -> None:
    static = sources(tmp_path)
    build(static)
    stamp = built_stamp(static)
    (static / "package.json").unlink()
    assert source_stamp(static) is None
    assert staleness(static) is None
    assert built_stamp(static) == stamp
