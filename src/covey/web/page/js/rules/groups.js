// Groups inbox items with the same cause, so that they can be decided together or one by one.
/** @import { InboxGroup, InboxItem } from "types/page.js" */

/**
 * Return those who ask the same as items of their own, each of which can be answered without the others.
 * @param {InboxItem} item
 */
export function each(item) {
  if ((item.parts?.length ?? 0) < 2) return [item];
  return item.parts
    .filter(({ id }) => item.ids.includes(id))
    .map(({ id, session, task, since, until }) => ({
      ...item,
      key: `${item.key} ${id}`,
      ids: [id],
      parts: [],
      session,
      task,
      since,
      until,
      sessions: session === null ? [] : [session],
      tasks: task === null ? [] : [task],
    }));
}

/** @param {InboxItem} item */
const causeOf = (item) => (item.cause ? `${item.kind} ${item.cause}` : null);

/**
 * Return what is listed, in the order of `items`: an item that is alone, or a group {key, kind, items, members} where the
 * first of its kind and cause stands. `members` are those that can be decided alone. What several ask alike is a group, too.
 * @param {InboxItem[]} items
 * @returns {(InboxItem | InboxGroup)[]}
 */
export function grouped(items) {
  /** @type {Map<string, InboxItem[]>} */
  const found = new Map();
  for (const item of items) {
    const name = causeOf(item) ?? item.key;
    const own = found.get(name);
    if (own) own.push(item);
    else found.set(name, [item]);
  }
  return [...found].map(([name, own]) => {
    const members = own.flatMap(each);
    return members.length < 2
      ? own[0]
      : { key: `group ${name}`, kind: own[0].kind, items: own, members, since: own[0].since };
  });
}

/**
 * Return the rows of the list: each unit, and after a group that is unfolded its members, `isSaid` if it says all of
 * them.
 * @param {InboxItem[]} items
 * @param {Set<string>} unfolded
 * @returns {(InboxItem | InboxGroup)[]}
 */
export function rows(items, unfolded) {
  return grouped(items).flatMap((unit) =>
    "members" in unit && unfolded.has(unit.key)
      ? [
          unit,
          ...unit.members.map((member) => ({
            ...member,
            within: unit.key,
            isSaid: unit.items.length === 1 || unit.kind === "blocked",
          })),
        ]
      : [unit],
  );
}

/**
 * Return the decisions that every item of a group knows.
 * @param {InboxGroup} group
 */
export function decisionsOf(group) {
  const [first, ...others] = group.items.map(({ decisions }) => decisions ?? []);
  return first.filter((decision) => others.every((known) => known.includes(decision)));
}

/**
 * Return the rule that would let all of a group through for good, or null.
 * @param {InboxGroup} group
 */
export function ruleOf(group) {
  const rules = new Set(group.items.map(({ rule }) => rule ?? ""));
  const [rule] = rules;
  return rules.size === 1 && rule !== "" ? rule : null;
}

/**
 * Return what is told when `done` of `count` were decided: {text, hint, bad}; `first` is what went wrong first, {name,
 * message}.
 * @param {number} count
 * @param {number} done
 * @param {string} noun
 * @param {string} deed
 * @param {{ name: string, message: string } | null | undefined} first
 */
export function told(count, done, noun, deed, first) {
  const all = `${count} ${noun}s`;
  if (done === count) return { text: `${all} ${deed}.`, hint: "", bad: false };
  const text = done ? `${done} of ${all} ${deed}, ${count - done} could not be.` : `None of ${all} ${deed}.`;
  return { text, hint: first ? `${first.name}: ${first.message}` : "", bad: true };
}
