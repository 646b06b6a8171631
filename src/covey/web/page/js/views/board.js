// The board.
import { html } from "../lib.js";
import { COLUMNS } from "../columns.js";
import { state, useTopics } from "../store.js";

export function View() {
  useTopics("tasks");
  return html`<div class="board">${COLUMNS.map(({ id, title }) => html`<section key=${id}><h2>${title} ${state.columns.lists.get(id).length}</h2></section>`)}</div>`;
}
