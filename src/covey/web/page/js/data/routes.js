// The address of the page. It is the only record of where somebody is, so links, back and reload all work.
/** @import { Whereabouts } from "types/page.js" */

const NAMES = ["board", "inbox", "sessions", "review", "queue", "timeline", "mail", "leases", "costs", "settings"];

/**
 * Return a part of an address as it was before it became one; what is none is taken as it stands.
 * @param {string} part
 */
export function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/**
 * Return where the address says that one is: a place, and what it shows there.
 * @returns {Whereabouts}
 */
export function whereabouts() {
  const [place, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  return { place: NAMES.includes(place) ? place : "board", what: rest.map(decoded).join("/") || null };
}

/**
 * Return the address of a place, such as to("review", "AF-12").
 * @param {string} place
 * @param {string | null} [what]
 */
export function to(place, what = null) {
  return what === null ? `#/${place}` : `#/${place}/${encodeURIComponent(what)}`;
}

/**
 * Go to a place.
 * @param {string} place
 * @param {string | null} [what]
 */
export function go(place, what = null) {
  location.hash = to(place, what);
}

/**
 * Return the notes that are still shown at a place: what went wrong elsewhere stays there, what was done can be undone
 * anywhere.
 * @template {{ bad: boolean, place: string }} T
 * @param {T[]} notes
 * @param {string} place
 */
export const keptAt = (notes, place) => notes.filter((note) => !note.bad || note.place === place);
