// htmx under a strict content security policy: one Trusted Types policy, and no string is ever run.

import htmx from "htmx.org";
import "htmx.org/dist/ext/hx-sse.js";

// Markup reaches htmx only in answers of our own server, whose templates escape learners' text.
const policy = window.trustedTypes?.createPolicy("htmx", {
  createHTML: (markup) => markup,
  createScript: () => "", // a fragment never carries a script
}) ?? { createHTML: (markup) => markup, createScript: () => "" };

class RefusedFunction {
  constructor() {
    throw new Error("Code in attributes is never run on this site.");
  }
}

htmx.registerExtension("strict", {
  init: (api) => api.initSecurity(policy, RefusedFunction, RefusedFunction),
});

export { htmx };
