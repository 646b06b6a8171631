// The size at which a terminal is shown in a tile: whole while it is legible, else only its last lines.

/** Pixels of letters: as a tile draws them, the smallest that are read with ease, and those of a part that is shown. */
export const FONT = { tile: 12, legible: 10, part: 11, least: 8, most: 16 };

/**
 * Return how a terminal of some pixels (measured with letters of `FONT.tile`) stands in a place: {font, scale}, and whether
 * only a `part` of it has room there.
 * @param {{ width: number, height: number }} props
 * @param {{ wide: number, high: number }} props
 */
export function lettersIn({ width, height }, { wide, high }) {
  const scale = Math.min(wide / width, high / height, 1.2);
  if (scale * FONT.tile >= FONT.legible) return { font: FONT.tile, scale, part: false };
  return { font: FONT.part, scale: 1, part: true };
}

/**
 * Return how far a part is scrolled so that the last line with something in it, counted from 0, stands at the bottom.
 * @param {number} last
 * @param {number} line
 * @param {number} high
 */
export function scrolledTo(last, line, high) {
  return Math.max(0, Math.ceil((last + 1) * line - high));
}
