"""Configuration of the site, from arguments, ACADEMY_* environment variables or a .env file.

Owns the data folder and the secret key in it. May import pydantic and engine.sandbox.choice.
"""

import os
import secrets
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from engine.sandbox.choice import Demand, SandboxChoice

LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")


def _data_home() -> Path:
    base = os.environ.get("XDG_DATA_HOME", "")
    return (Path(base) if base else Path.home() / ".local" / "share") / "deep-learning-academy"


def _num_slots() -> int:
    return max(2, (os.cpu_count() or 1) // 2)


class Settings(BaseSettings):
    """What an operator may choose; every field has a default that suits one machine."""

    model_config = SettingsConfigDict(
        env_prefix="ACADEMY_", env_file=".env", extra="ignore", frozen=True
    )

    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=0, le=65535)
    data_dir: Path = Field(default_factory=_data_home)
    database_url: str = ""
    """Empty: SQLite in data_dir."""
    secret_key: str = Field(default="", repr=False)
    """Empty: made once, in data_dir."""
    allowed_hosts: Annotated[tuple[str, ...], NoDecode] = ()
    """Further names under which the site is reached, with commas; loopback names always are."""
    slots: int = Field(default_factory=_num_slots, ge=1, le=1024)
    """Runs that may go on at once."""
    runs_per_learner: int = Field(default=3, ge=1)
    """Runs that one learner may have going."""
    queue_wait_s: float = Field(default=600.0, gt=0)
    """After this long in the queue a run is given up."""
    tier: Demand = "auto"
    """How runs are isolated: by this tier and no other, or as strongly as the machine allows."""
    allow_unsandboxed: bool = False
    lessons_dir: Path | None = None
    """Folder of courses and lessons; None: those that came with the package."""
    content_dir: Path | None = None
    """Folder with templates, static and lessons; None: those that came with the package."""

    @field_validator("allowed_hosts", mode="before")
    @classmethod
    def _split_hosts(cls, value: str | tuple[str, ...]) -> tuple[str, ...]:
        parts = value.split(",") if isinstance(value, str) else value
        return tuple(part.strip() for part in parts if part.strip())

    @model_validator(mode="after")
    def _ask_for_one_isolation(self) -> Self:
        _ = self.sandbox
        return self

    @property
    def sandbox(self) -> SandboxChoice:
        """How runs are isolated. Raises: ValueError when two settings contradict each other."""
        return SandboxChoice.demanded(self.tier, allow_open=self.allow_unsandboxed)

    @property
    def store_url(self) -> str:
        """The database as SQLAlchemy names it."""
        return self.database_url or f"sqlite+aiosqlite:///{self.data_dir / 'academy.sqlite3'}"

    @property
    def hosts(self) -> tuple[str, ...]:
        """Every Host header that is answered, without its port."""
        own = () if self.host in ("0.0.0.0", "::") else (self.host,)  # noqa: S104
        return (*LOOPBACK, *own, *self.allowed_hosts)

    @property
    def content(self) -> Path:
        """Folder that holds templates, static and lessons."""
        if self.content_dir:
            return self.content_dir
        packed = Path(__file__).parent / "_data"
        return packed if packed.is_dir() else Path(__file__).parent.parent

    @property
    def lessons(self) -> Path:
        """Folder that holds courses and lessons."""
        return self.lessons_dir or self.content / "lessons"

    def make_data_dir(self) -> None:
        """Create the data folder, readable by its owner only. Raises: OSError."""
        self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)

    def has_secret(self) -> bool:
        """Whether there is a key already, given or made by a site that used the data folder."""
        return bool(self.secret_key) or (self.data_dir / "secret_key").is_file()

    def secret(self) -> str:
        """The key that signs cookies; made on first use, mode 0600. Raises: OSError."""
        if self.secret_key:
            return self.secret_key
        self.make_data_dir()
        path = self.data_dir / "secret_key"
        if not path.exists():
            # Linked into place complete: a second process never reads half a key.
            draft = path.with_name(f"secret_key.{os.getpid()}")
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with open(descriptor, "w", encoding="ascii") as file:
                file.write(secrets.token_urlsafe(48))
            try:
                os.link(draft, path)
            except FileExistsError:
                pass
            finally:
                draft.unlink()
        return path.read_text(encoding="ascii").strip()
