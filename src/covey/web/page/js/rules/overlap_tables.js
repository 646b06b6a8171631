// The tables of open branches that touch the same files.
/** @import { OverlapRow, Overlaps, OverlapLevel } from "types/rest.js" */
/** @import { OverlapCell, OverlapTable } from "types/page.js" */

/**
 * How near two branches come: the sign and the word of each level.
 * @type {Record<string, { sign: string; word: string; }>}
 */
export const LEVELS = {
  file: { sign: "·", word: "same file, far apart" },
  hunk: { sign: "≈", word: "same lines" },
  conflict: { sign: "✕", word: "conflict" },
};
const MOST = 60;
/** @type {Record<string, number>} */
const RANK = { file: 1, hunk: 2, conflict: 3 };
/**
 * @param {OverlapLevel} one
 * @param {OverlapLevel} other
 */
const worse = (one, other) => ((RANK[one] ?? 0) >= (RANK[other] ?? 0) ? one : other);

/**
 * Return both tables from what overlaps: names of rows and columns, and what stands where they meet.
 * @param {Overlaps} props
 */
export function matrices({ overlaps, hot }) {
  const heat = new Map(hot.map((file) => [file.path, file.collisions]));
  /** @type {OverlapTable} */
  const byTask = { rows: [], columns: [], cells: new Map(), heat, more: 0 };
  /** @type {OverlapTable} */
  const byFile = { rows: [], columns: [], cells: new Map(), heat, more: 0 };
  /** @type {Set<string>} */
  const names = new Set();
  const files = new Set(heat.keys());
  /** @type {Set<string>} */
  const people = new Set();
  /**
   * @param {OverlapTable} table
   * @param {string} row
   * @param {string} column
   * @param {OverlapRow} overlap
   */
  const enter = (table, row, column, overlap) => {
    const key = `${row}\n${column}`;
    const before = table.cells.get(key);
    table.cells.set(key, {
      level: before ? worse(before.level, overlap.level) : overlap.level,
      overlaps: [...(before?.overlaps ?? []), overlap],
    });
  };
  for (const overlap of overlaps) {
    const { one, other } = overlap;
    names.add(one).add(other);
    enter(byTask, one, other, overlap);
    enter(byTask, other, one, overlap);
    for (const file of overlap.files) {
      files.add(file);
      for (const who of new Set([overlap.one_session ?? one, overlap.other_session ?? other])) {
        people.add(who);
        enter(byFile, file, who, overlap);
      }
    }
  }
  /**
   * @param {string} a
   * @param {string} b
   */
  const inOrder = (a, b) => a.localeCompare(b, "en", { numeric: true });
  byTask.rows = byTask.columns = nearest([...names], byTask.cells).sort(inOrder);
  byTask.more = names.size - byTask.rows.length;
  byFile.rows = nearest([...files], byFile.cells).sort(
    (a, b) => (heat.get(b) ?? 0) - (heat.get(a) ?? 0) || inOrder(a, b),
  );
  byFile.more = files.size - byFile.rows.length;
  byFile.columns = [...people].sort(inOrder).slice(0, MOST);
  return { byTask, byFile };
}

/**
 * Return of some names those that come nearest to others, if there are more than a table has room for.
 * @param {string[]} names
 * @param {Map<string, OverlapCell>} cells
 */
function nearest(names, cells) {
  if (names.length <= MOST) return names;
  /** @type {Map<string, number>} */
  const ranks = new Map();
  for (const [key, { level }] of cells) {
    const [row] = key.split("\n");
    ranks.set(row, Math.max(ranks.get(row) ?? 0, RANK[level] ?? 0));
  }
  return names.sort((a, b) => (ranks.get(b) ?? 0) - (ranks.get(a) ?? 0)).slice(0, MOST);
}
