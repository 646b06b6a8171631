// How far a merge is on its way to main.

/** At which step a merge was sent back, by its cause; without one a person did so. */
const FAILED = { fails: "test", text: "build", needs: "build" };

/** Return the steps of a merge on its way to main, each with how it stands. */
export function stepsOf(merge) {
  const past = ["passed", "landed", "reverted"].includes(merge.state);
  const failed = merge.state === "rejected" ? (FAILED[merge.cause] ?? "review") : null;
  const reviewed = merge.state === "review" ? "now" : failed === "review" ? "failed" : "done";
  const built = failed === "build" ? "failed" : past || merge.state === "testing" || merge.candidate ? "done" : merge.state === "queued" ? "now" : failed === "test" ? "done" : "next";
  const tested = merge.untested ? "skipped" : past ? "done" : merge.state === "testing" ? "now" : failed === "test" ? "failed" : "next";
  const landed = ["landed", "reverted"].includes(merge.state) ? "done" : merge.state === "passed" ? "now" : "next";
  return [
    { name: "review", state: reviewed },
    { name: "build", state: built },
    { name: "test", state: tested },
    { name: "land", state: landed },
  ];
}

const OPEN = ["review", "queued", "testing", "passed"];

/** Return the reverts that are under way among some merges, by the merge that each takes out of main. */
export function revertsUnderWay(merges) {
  return new Map(merges.filter((merge) => merge.reverts && OPEN.includes(merge.state)).map((merge) => [merge.reverts, merge]));
}

/** Return what came of a wish to revert a merge: the revert `made` may wait for an approval first. */
export function saidOfRevert(merge, made) {
  if (made.state === "review") return `The revert of ${merge.task}, ${made.task}, waits for your approval in the inbox.`;
  return `${merge.task} is being taken out of main, by ${made.task}.`;
}
