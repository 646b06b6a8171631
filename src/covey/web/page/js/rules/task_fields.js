// What rows of the board do not have of a task: it is known only to those who asked for the task itself.
/** @import { TaskRow, TaskShown } from "types/rest.js" */
/** @import { Task } from "types/page.js" */

/** @satisfies {Record<Exclude<keyof TaskShown, keyof TaskRow>, true>} */
const ONLY_WHOLE = {
  body: true,
  author: true,
  done_when: true,
  budget: true,
  key: true,
  tries: true,
  notes: true,
  result: true,
  result_by: true,
  front: true,
  unmet: true,
  open_children: true,
  until: true,
  reverted: true,
  cost: true,
  tokens: true,
  unpriced: true,
  waits: true,
};

/**
 * Say whether rows of the board have a field.
 * @param {string} name
 */
export const isInRows = (name) => !Object.hasOwn(ONLY_WHOLE, name);

/**
 * Return the row of a task as the board has it.
 * @param {Task} task
 */
export const rowOf = (task) =>
  /** @type {Task} */ (Object.fromEntries(Object.entries(task).filter(([name]) => isInRows(name))));
