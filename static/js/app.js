// Entry of the page's script: htmx with its stream extension, then our own small pieces.
// Every one of them only improves markup that already works without this file.

import "./security.js";
import { CodeCell } from "./code-cell.js";
import { CollectiveTimeline } from "./timeline.js";
import { watchRuns } from "./runs.js";
import { keepPlace } from "./place.js";
import { watchChecks } from "./checks.js";

customElements.define("code-cell", CodeCell);
customElements.define("collective-timeline", CollectiveTimeline);
watchRuns(document);
keepPlace(document);
watchChecks(document);
