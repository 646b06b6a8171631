// Comments on lines of a diff: written as drafts, sent to the author of the work, with a receipt.
import { html, useEffect, useRef, useState } from "../lib.js";
import { ask, patch, post } from "../data/api.js";
import { sayLines } from "../rules/diff.js";
import { to } from "../data/routes.js";
import { clock } from "../rules/text.js";
import { attempt, Button, note, Words } from "../widgets/ui.js";
/** @import { Comment, CommentFields } from "types/page.js" */
/** @import { Ref } from "types/vendor/hooks.js" */
/** @import { PageEvent } from "types/vendor/htm.js" */
/** @import { Child } from "types/vendor/preact.js" */

/** @type {Record<string, [string, string]>} */
const RECEIPTS = {
  draft: ["○", "draft"],
  sent: ["✓", "sent"],
  read: ["✓✓", "read"],
  delivered: ["✓✓", "delivered"],
  acked: ["✓✓", "acknowledged"],
};

/**
 * What became of a comment: a sign, a word, and when.
 * @param {{ comment: Comment }} props
 */
export function Receipt({ comment }) {
  const [sign, word] = RECEIPTS[comment.state] ?? ["", comment.state];
  const at = comment.acked ?? comment.delivered ?? comment.read ?? comment.sent;
  const to = comment.to ? ` to ${comment.to}` : comment.back ? " with the work" : "";
  return html`<span class=${`receipt receipt-${comment.state}`} title=${at ? `${word}${to}, ${clock(at)}` : "Only you see it"}>
    <span aria-hidden="true">${sign}</span> ${word}${comment.state === "draft" ? "" : html`<span class="receipt-to">${to}</span>`}
  </span>`;
}

/**
 * Say where the line of a comment is by now, if that is another place.
 * @param {{ comment: Comment }} props
 */
export function Moved({ comment }) {
  if (comment.place === "moved")
    return html`<span class="moved">now ${sayLines(comment.now ?? 0, comment.lines)}</span>`;
  return comment.place === "outdated" ? html`<span class="moved">outdated</span>` : null;
}

/**
 * Throw a draft away, and offer to write it again.
 * @param {Comment} comment
 */
export async function remove(comment) {
  const gone = await attempt(() => post(`/api/comments/${comment.id}/remove`));
  if (gone === undefined) return;
  const { task, text, path, side, line, lines, commit, quote } = comment;
  const again = { task, text, ...(path && { path, side, commit, quote }), ...(line && { line, lines }) };
  note("The comment is removed.", { undo: () => attempt(() => post("/api/comments", again), "It is back.") });
}

/**
 * Send drafts on a task; with `back`, the work goes back to its author with them. Says whether that was done.
 * @param {string} task
 * @param {{ ids?: string[] | null, text?: string, back?: boolean }} [props]
 */
export async function send(task, { ids = null, text = "", back = false } = {}) {
  const sent = await attempt(() =>
    post("/api/comments/send", { task, back, ...(ids && { ids }), ...(text && { text }) }),
  );
  if (!sent) return false;
  const who = sent.to ? ` to ${sent.to}` : "";
  note(back ? `Sent ${task} back${who}.` : `Sent${who}.`, { hint: sent.waits ?? "" });
  return true;
}

/**
 * One comment where it stands, with what can be done with it.
 * @param {{ comment: Comment, place?: boolean, task?: boolean, onGo?: (() => void) | null }} props
 */
export function Remark({ comment, place = false, task = false, onGo = null }) {
  const [editing, setEditing] = useState(false);
  const draft = comment.state === "draft";
  if (editing) {
    /** @param {string} text */
    const save = async (text) => {
      const saved = await attempt(() => patch(`/api/comments/${comment.id}`, { text }));
      if (saved !== undefined) setEditing(false);
      return saved !== undefined;
    };
    return html`<div class="remark raised"><${Editor} value=${comment.text} action="Save" onSave=${save} onClose=${() => setEditing(false)} /></div>`;
  }
  const first = comment.now ?? comment.line;
  const where = comment.path
    ? `${comment.path}${first ? `:${first}${comment.lines > 1 ? `–${first + comment.lines - 1}` : ""}` : ""}`
    : "The work as a whole";
  return html`<article class=${`remark raised ${draft ? "is-draft" : ""}`} aria-label=${`Comment, ${RECEIPTS[comment.state]?.[1] ?? ""}`}>
    <header class="remark-head row">
      ${task && html`<a class="file-task" href=${to("review", comment.task)}>${comment.task}</a>`}
      ${!place && comment.line && comment.lines > 1 && html`<span class="soft">${sayLines(first ?? 0, comment.lines)}</span>`}
      ${place && html`<button type="button" class="remark-place mono" onClick=${onGo} disabled=${!onGo}><${Words} text=${where} most=${200} /></button>`}
      <${Moved} comment=${comment} />
      <${Receipt} comment=${comment} />
      <span class="spring"></span>
      ${
        draft &&
        html`<${Button} kind="quiet" onClick=${() => send(comment.task, { ids: [comment.id] })} title="Send this one at once">Send now<//>
        <${Button} kind="quiet" onClick=${() => setEditing(true)}>Edit<//>
        <${Button} kind="quiet" onClick=${() => remove(comment)}>Remove<//>`
      }
    </header>
    ${place && comment.quote.trim() && html`<pre class="remark-quote as-written"><${Words} text=${comment.quote} most=${300} /></pre>`}
    <p class="remark-text as-written"><${Words} text=${comment.text} most=${16384} /></p>
  </article>`;
}

/**
 * A field for a comment: saved as a draft, or sent at once if `onNow` is there.
 * @param {{ value?: string, action?: string, label?: string, onSave: (text: string) => Promise<boolean>, onNow?: ((text: string) => Promise<boolean>) | null, onClose: () => void, children?: Child }} props
 */
export function Editor({
  value = "",
  action = "Add comment",
  label = "Comment",
  onSave,
  onNow = null,
  onClose,
  children = null,
}) {
  /** @type {Ref<HTMLTextAreaElement>} */
  const field = useRef(null);
  const [text, setText] = useState(value);
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    field.current?.focus({ preventScroll: true });
    field.current?.setSelectionRange(value.length, value.length);
  }, []);
  /** @param {(text: string) => Promise<boolean>} work */
  const end = async (work) => {
    if (!text.trim() || busy) return;
    setBusy(true);
    if (!(await work(text.trim()))) setBusy(false);
  };
  /** @param {PageEvent} event */
  const type = (event) => {
    if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      onClose();
    } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      end(event.shiftKey && onNow ? onNow : onSave);
    }
  };
  return html`<form class="editor" onSubmit=${(event) => {
    event.preventDefault();
    end(onSave);
  }}>
    ${children}
    <textarea ref=${field} rows=${Math.min(12, Math.max(3, text.split("\n").length))} aria-label=${label} placeholder="What should change, and why" value=${text}
      onInput=${(event) => setText(event.target.value)} onKeyDown=${type} maxlength="16384"></textarea>
    <footer class="editor-foot row">
      <button type="submit" class="button primary" disabled=${busy || !text.trim()}>${action}<kbd>Ctrl+Enter</kbd></button>
      ${onNow && html`<${Button} disabled=${busy || !text.trim()} onClick=${() => end(onNow)}>Send now<//>`}
      <${Button} kind="quiet" onClick=${onClose}>Cancel<//>
    </footer>
  </form>`;
}

/**
 * Write a draft on a line, and send it at once if asked to; says whether it is kept.
 * @param {CommentFields & { task: string }} fields
 */
export async function write(fields, now = false) {
  const written = await attempt(() => ask("POST", "/api/comments", fields));
  if (written === undefined) return false;
  if (now) await send(fields.task, { ids: [written.id] });
  return true;
}
