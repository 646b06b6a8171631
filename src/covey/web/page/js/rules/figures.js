// Numbers as people read them: counts, money, durations, sizes; the same on every surface.
// The command line has the same rules in core/figures.py; one table of examples is held against both.

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86400;
const LEAST_DOLLARS = 1e-12;
const MOST_DIGITS = 14;
/** By which a number that lies between two is made to round up, in every language. */
const HALF_UP = 1 + 1e-12;

/** @param {string} digits */
const commas = (digits) => digits.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
/** @param {number} number */
const whole = (number) => commas(String(Math.floor(number + 0.5)));

/**
 * Return a number with so many digits behind its point, and commas between its thousands.
 * @param {number} number
 * @param {number} digits
 */
function fixed(number, digits) {
  const [front, rest] = (number * HALF_UP).toFixed(digits).split(".");
  return rest === undefined ? commas(front) : `${commas(front)}.${rest}`;
}

/**
 * Return a number, with commas between its thousands.
 * @param {number} number
 */
export function count(number) {
  return number < 0 ? `-${commas(String(-number))}` : commas(String(number));
}

/**
 * Return a number with its noun: 1 task, 3 tasks.
 * @param {number} number
 * @param {string} noun
 */
export function one(number, noun, many = `${noun}s`) {
  return `${count(number)} ${number === 1 ? noun : many}`;
}

/**
 * Return dollars with as many digits as they need: cents, and for less than a dollar three that count.
 * @param {number} dollars
 */
function amount(dollars) {
  const least = dollars > 0 ? Math.max(dollars, LEAST_DOLLARS) : dollars;
  let digits = 2;
  while (least > 0 && least * 10 ** digits < 99.5 && digits < MOST_DIGITS) digits += 1;
  const [front, rest] = fixed(least, digits).split(".");
  return `${front}.${rest.slice(0, 2)}${rest.slice(2).replace(/0+$/, "")}`;
}

/**
 * Return dollars as people write them.
 * @param {number | null | undefined} dollars
 */
export function money(dollars) {
  const known = dollars ?? 0;
  return known < 0 ? `-$${amount(-known)}` : `$${amount(known)}`;
}

/**
 * Return how long something lasts, in its largest two units at most.
 * @param {number} seconds
 */
export function span(seconds) {
  const passed = Math.floor(Math.max(seconds, 0) + 0.5);
  if (passed < MINUTE) return `${passed} s`;
  if (passed < HOUR) return `${Math.floor(passed / MINUTE)} min`;
  if (passed >= DAY) return `${Math.floor(passed / DAY)} d`;
  const minutes = Math.floor((passed % HOUR) / MINUTE);
  return minutes ? `${Math.floor(passed / HOUR)} h ${minutes} min` : `${Math.floor(passed / HOUR)} h`;
}

/**
 * Return bytes in the unit that fits them: 340 MB, 1.2 GB.
 * @param {number} number
 */
export function size(number) {
  if (number < 1000) return one(number, "byte");
  if (number < 1e6) return `${whole(number / 1000)} kB`;
  return number < 1e9 ? `${whole(number / 1e6)} MB` : `${fixed(number / 1e9, 1)} GB`;
}

/**
 * Return a number of tokens where there is little room: 950, 12k, 3.4M.
 * @param {number} number
 */
export function tokens(number) {
  if (number < 1000) return String(number);
  return number < 1e6 ? `${whole(number / 1000)}k` : `${fixed(number / 1e6, 1)}M`;
}
