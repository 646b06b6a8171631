// The strip at the top: what needs a person, what works, what it costs, and the switch for all of it.
import { html } from "./lib.js";
import { state, useTopics } from "./store.js";

export function Strip() {
  useTopics("counts", "connection", "machine");
  return html`<header class="strip"><strong>covey</strong> <span>${state.connection.state}</span></header>`;
}

export function Tabs({ where, places }) {
  return html`<nav class="tabs" aria-label="Views">${places.map(({ id, title }) => html`<a key=${id} href=${`#/${id}`} aria-current=${id === where.place ? "page" : undefined}>${title}</a>`)}</nav>`;
}
