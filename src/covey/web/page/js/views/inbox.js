// What needs a person.
import { html } from "../lib.js";

export function View() {
  return html`<p class="loading">…</p>`;
}
