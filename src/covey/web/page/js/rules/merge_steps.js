// How far a merge is on its way to main.
/** @import { Merge, MergeSteps } from "types/page.js" */

const STEPS = ["review", "build", "test", "land"];
/**
 * At which step a merge is, by its state; one that has landed has them all behind it.
 * @type {Record<string, number>}
 */
const REACHED = { review: 0, queued: 1, testing: 2, passed: 3, landed: 4, reverted: 4 };
/**
 * At which step a merge was sent back, by its cause; without one a person did so.
 * @type {Record<string, number>}
 */
const FAILED = { fails: 2, text: 1, needs: 1 };

/**
 * Return the steps of a merge on its way to main, each with how it stands.
 * @param {MergeSteps} merge
 */
export function stepsOf(merge) {
  const failed = merge.state === "rejected" ? (FAILED[merge.cause] ?? 0) : null;
  const reached = REACHED[merge.state] ?? failed ?? 1;
  /** @param {number} step */
  const stateOf = (step) => {
    if (step === 2 && merge.untested) return "skipped";
    if (step === failed) return "failed";
    if (step < reached || (step === 1 && merge.candidate)) return "done";
    return step === REACHED[merge.state] ? "now" : "next";
  };
  return STEPS.map((name, step) => ({ name, state: stateOf(step) }));
}

const OPEN = ["review", "queued", "testing", "passed"];

/**
 * Return the reverts that are under way among some merges, by the merge that each takes out of main.
 * @param {Merge[]} merges
 */
export function revertsUnderWay(merges) {
  const open = merges.filter((merge) => merge.reverts && OPEN.includes(merge.state));
  return new Map(open.map((merge) => [merge.reverts ?? "", merge]));
}

/**
 * Return what came of a wish to revert a merge: the revert `made` may wait for an approval first.
 * @param {{ task: string }} merge
 * @param {{ state: string, task: string }} made
 */
export function saidOfRevert(merge, made) {
  if (made.state === "review")
    return `The revert of ${merge.task}, ${made.task}, waits for your approval in the inbox.`;
  return `${merge.task} is being taken out of main, by ${made.task}.`;
}
