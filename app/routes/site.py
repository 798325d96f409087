"""What every route needs: the parts of the site, and who asks in which language.

May import all of app below the routes. `app.main` builds the one Site and puts it on the app.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from app.administration import Administration
from app.i18n import Language, Translations
from app.identity import Identity, Learner
from app.lessons import Catalogue
from app.panels.contexts import CellView
from app.progress import Progress
from app.routes.render import Templates
from app.runs import Owner, RunService


class BadCellForm(ValueError):
    """What a cell's form holds cannot be run; `text` says why in the learner's language."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class CellRefused(Exception):
    """A request on a cell was refused; the cause says why, the template is what the cell shows."""

    def __init__(self, view: CellView, template: str, cause: Exception) -> None:
        super().__init__(str(cause))
        self.view = view
        self.template = template
        self.cause = cause


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The parts of the site, opened together and closed together."""

    catalogue: Catalogue
    translations: Mapping[Language, Translations]
    templates: Templates
    identity: Identity
    progress: Progress
    runs: RunService
    administration: Administration
    is_unsandboxed: bool


def get_site(request: Request) -> Site:
    site = request.app.state.site
    assert isinstance(site, Site)
    return site


SiteOf = Annotated[Site, Depends(get_site)]


def get_learner(request: Request, site: SiteOf) -> Learner:
    """The learner who asks; the same one all through a request."""
    known = getattr(request.state, "learner", None)
    if isinstance(known, Learner):
        return known
    learner = site.identity.learner(request)
    request.state.learner = learner
    return learner


LearnerOf = Annotated[Learner, Depends(get_learner)]


def get_owner(request: Request, learner: LearnerOf) -> Owner:
    """Whose run a request starts; who sends no cookie is counted by address, lest a limit per
    learner be evaded by being a new one each time."""
    address = request.client.host if request.client else "unknown"
    key = f"address {address}" if learner.is_new else learner.id
    return Owner(learner_id=learner.id, key=key)


def get_api_owner(request: Request, learner: LearnerOf) -> Owner:
    """Whose run an API request starts: without a cookie nobody's."""
    owner = get_owner(request, learner)
    return Owner(learner_id=None, key=owner.key) if learner.is_new else owner


OwnerOf = Annotated[Owner, Depends(get_owner)]
ApiOwnerOf = Annotated[Owner, Depends(get_api_owner)]


def is_htmx(request: Request) -> bool:
    """Whether htmx asks and wants a fragment."""
    return request.headers.get("hx-request") == "true"
