// The editor itself, a bundle of its own that loads after the page is already usable.

import { autocompletion, closeBrackets, completionKeymap } from "@codemirror/autocomplete";
import { closeBracketsKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { bracketMatching, HighlightStyle, indentOnInput } from "@codemirror/language";
import { indentUnit, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap } from "@codemirror/view";
import { highlightActiveLineGutter, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword], color: "var(--code-keyword)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-string)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--code-number)" },
  { tag: [tags.comment], color: "var(--code-comment)", fontStyle: "italic" },
  {
    tag: [tags.function(tags.variableName), tags.function(tags.propertyName)],
    color: "var(--code-function)",
  },
  { tag: [tags.className, tags.definition(tags.className)], color: "var(--code-class)" },
]);

const look = EditorView.theme({
  "&": { color: "var(--code-ink)", backgroundColor: "var(--code-paper)", fontSize: "inherit" },
  "&.cm-focused": { outline: "2px solid var(--focus)", outlineOffset: "1px" },
  ".cm-scroller": { fontFamily: "var(--font-code)", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--ink)", padding: "0.75rem 0" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": {
    color: "var(--code-comment)",
    backgroundColor: "var(--code-paper)",
    border: "none",
  },
  ".cm-lineNumbers .cm-gutterElement": { padding: "0 0.3em 0 0.1em", minWidth: "1.6em" },
  ".cm-gutter-lint": { width: "1em" },
  ".cm-gutter-lint .cm-gutterElement": { padding: "0" },
  ".cm-lint-marker": { width: "0.9em", height: "0.9em" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "transparent" },
  "&.cm-focused :is(.cm-activeLine, .cm-activeLineGutter)": {
    backgroundColor: "var(--code-line)",
  },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground":
    { backgroundColor: "var(--code-selection)" },
  ".cm-matchingBracket": { backgroundColor: "var(--code-selection)" },
  ".cm-tooltip, .cm-panels": {
    color: "var(--ink)",
    backgroundColor: "var(--raised)",
    border: "1px solid var(--line)",
  },
  ".cm-tooltip-autocomplete ul li[aria-selected]": {
    color: "var(--on-accent)",
    backgroundColor: "var(--accent)",
  },
  ".cm-diagnostic": { whiteSpace: "pre-wrap", maxWidth: "30rem" },
});

// Text typed over a selection: left to itself the browser would keep the old look by a style
// attribute, which the content policy forbids.
function replaceTyped(event, view) {
  const { main } = view.state.selection;
  if (event.inputType !== "insertText" || event.isComposing || main.empty || !event.data) {
    return false;
  }
  const insert = () =>
    view.state.update(view.state.replaceSelection(event.data), {
      userEvent: "input.type",
      scrollIntoView: true,
    });
  const handlers = view.state.facet(EditorView.inputHandler);
  if (!handlers.some((handle) => handle(view, main.from, main.to, event.data, insert))) {
    view.dispatch(insert());
  }
  event.preventDefault();
  return true;
}

export class Editor {
  constructor({ area, label, describedBy, nonce, onRun }) {
    this.area = area;
    const run = () => (onRun(), true);
    const state = EditorState.create({
      doc: area.value,
      extensions: [
        nonce ? EditorView.cspNonce.of(nonce) : [],
        // Before the other keys: Mod-Enter would otherwise open a new line.
        keymap.of([{ key: "Mod-Enter", run }]),
        lineNumbers(),
        highlightActiveLineGutter(),
        highlightActiveLine(),
        history(),
        drawSelection(),
        indentUnit.of("    "),
        EditorState.tabSize.of(4),
        indentOnInput(),
        bracketMatching(),
        closeBrackets(),
        autocompletion({ activateOnTyping: false }), // on Ctrl-Space: typing stays calm
        highlightSelectionMatches(),
        lintGutter(),
        python(),
        syntaxHighlighting(colours),
        look,
        keymap.of([
          ...closeBracketsKeymap,
          ...defaultKeymap,
          ...searchKeymap,
          ...historyKeymap,
          ...completionKeymap,
          ...lintKeymap,
          indentWithTab,
        ]),
        EditorView.contentAttributes.of({
          "aria-label": label,
          tabindex: "0",
          ...(describedBy ? { "aria-describedby": describedBy } : {}),
        }),
        EditorView.domEventHandlers({ beforeinput: replaceTyped }),
        EditorView.updateListener.of((update) => update.docChanged && this.sync()),
      ],
    });
    const hadFocus = document.activeElement === area;
    this.view = new EditorView({ state });
    area.hidden = true;
    area.after(this.view.dom);
    if (hadFocus) this.view.focus();
  }

  // The textarea stays the truth that forms post.
  sync() {
    this.area.value = this.view.state.doc.toString();
    this.area.dispatchEvent(new Event("input", { bubbles: true }));
  }

  mark(marks) {
    const diagnostics = marks.map((mark) => this.#diagnostic(mark)).filter(Boolean);
    this.view.dispatch(setDiagnostics(this.view.state, diagnostics));
  }

  // Lines count from 1, columns in UTF-16 code units from 0, as CodeMirror's own positions do.
  #diagnostic({ line, column, end_line, end_column, text }) {
    const { doc } = this.view.state;
    if (line < 1 || line > doc.lines) return null;
    const start = doc.line(line);
    const indent = start.text.length - start.text.trimStart().length;
    const from = Math.min(start.from + (column ?? indent), start.to);
    const last = end_line && end_line <= doc.lines && end_line >= line ? doc.line(end_line) : start;
    const to = end_column == null ? start.to : Math.min(last.from + end_column, last.to);
    return { from, to: Math.max(from, to), severity: "error", message: text };
  }

  destroy() {
    this.area.hidden = false;
    this.view.destroy();
  }
}
