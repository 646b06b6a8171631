// Requests for new sessions: read from typed words, and written as the command that does the same.

const WISH =
  /^(?:add|new|run|start)\s+(\d{1,3})(?:\s+(?!sessions?\b|as\b)([a-z0-9][\w-]*))?(?:\s+sessions?)?(?:\s+as\s+([a-z0-9][\w-]*))?$/i;

/**
 * Return the sessions that some words ask for, such as "start 4 claude as qa": {count, agent, role}; null if they do
 * not.
 * @param {string} typed
 */
export function readCrew(typed) {
  const found = WISH.exec(typed.trim());
  const count = Number(found?.[1] ?? 0);
  return count ? { count, agent: found?.[2]?.toLowerCase() ?? null, role: found?.[3] ?? null } : null;
}

/**
 * Return the command that adds such sessions in a terminal.
 * @param {{ count: number, name?: string, agent?: string | null, role?: string | null, permissions?: string | null, start?: boolean }} props
 */
export function commandOf({ count, name, agent, role, permissions, start }) {
  const who = count === 1 ? (name ? [name] : []) : ["-n", String(count)];
  const more = [
    ["--agent", agent],
    ["--role", role],
    ["--permissions", permissions],
  ].flatMap(([option, value]) => (value ? [option, value] : []));
  const words = [
    "covey session new",
    ...(who.length || start ? who : ["-n", "1"]),
    ...more,
    ...(start ? ["--start"] : []),
  ];
  return words.join(" ");
}

/**
 * Return names as a sentence has them; of many only the first few.
 * @param {string[]} names
 */
export function listed(names, most = 4) {
  if (names.length > most + 1) return `${names.slice(0, most).join(", ")} and ${names.length - most} more`;
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}
