// Where one is: the address is the only memory of it, so that links, the way back and a reload all work.

const NAMES = ["board", "inbox", "sessions", "review", "queue", "timeline", "mail", "leases", "costs", "settings"];

/** Return a part of an address as it was before it became one; what is none is taken as it stands. */
export function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Return where the address says that one is: a place, and what it shows there. */
export function whereabouts() {
  const [place, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  return { place: NAMES.includes(place) ? place : "board", what: rest.map(decoded).join("/") || null };
}

/** Return the address of a place, such as to("review", "AF-12"). */
export function to(place, what = null) {
  return what === null ? `#/${place}` : `#/${place}/${encodeURIComponent(what)}`;
}

/** Go to a place. */
export function go(place, what = null) {
  location.hash = to(place, what);
}

/** Return the notes that are still shown at a place: what went wrong elsewhere stays there, what was done can be undone anywhere. */
export const keptAt = (notes, place) => notes.filter((note) => !note.bad || note.place === place);
