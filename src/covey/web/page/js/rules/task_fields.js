// Which fields of a task a row of the board has; the rest is known only to those who asked for the task itself.
/** @import { TaskRow } from "types/rest.js" */
/** @import { Task } from "types/page.js" */

/** @satisfies {Record<keyof TaskRow, true>} */
const IN_ROWS = {
  id: true,
  title: true,
  status: true,
  session: true,
  kind: true,
  assignee: true,
  role: true,
  priority: true,
  rank: true,
  needs: true,
  needs_any: true,
  parent: true,
  scope: true,
  do_not_touch: true,
  overlap: true,
  fence: true,
  ready: true,
  reason: true,
  commit: true,
  failed_tries: true,
  sent_back: true,
  created: true,
  updated: true,
  claimed: true,
  ended: true,
  batch: true,
  added_by: true,
  lane: true,
};

/**
 * Say whether rows of the board have a field.
 * @param {string} name
 */
export const isInRows = (name) => Object.hasOwn(IN_ROWS, name);

/**
 * Return the row of a task as the board has it.
 * @param {Task} task
 */
export const rowOf = (task) =>
  /** @type {Task} */ (Object.fromEntries(Object.entries(task).filter(([name]) => isInRows(name))));
