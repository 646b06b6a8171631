// Whether it is a quiet hour, when the page makes no sound.

/**
 * Say whether a moment lies in quiet hours, which may go over midnight.
 * @param {{ quiet: boolean, quietFrom: string, quietUntil: string }} props
 */
export function isQuiet({ quiet, quietFrom, quietUntil }, at = new Date()) {
  if (!quiet || quietFrom === quietUntil) return false;
  const now = at.getHours() * 60 + at.getMinutes();
  const [from, until] = [quietFrom, quietUntil].map((time) => Number(time.slice(0, 2)) * 60 + Number(time.slice(3, 5)));
  return from < until ? now >= from && now < until : now >= from || now < until;
}
