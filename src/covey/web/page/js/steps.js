// How far a merge is on its way to main.

/** Return the steps of a merge on its way to main, each with how it stands. */
export function stepsOf(merge) {
  const past = ["passed", "landed", "reverted"].includes(merge.state);
  const failed = merge.state === "rejected";
  const byPerson = failed && !merge.cause && !merge.run;
  const reviewed = merge.state === "review" ? "now" : byPerson && !merge.approved ? "failed" : "done";
  const built = past || merge.state === "testing" || merge.candidate ? "done" : failed && merge.cause === "text" ? "failed" : merge.state === "queued" ? "now" : "next";
  const tested = merge.untested ? "skipped" : past ? "done" : merge.state === "testing" ? "now" : failed && merge.run ? "failed" : "next";
  const landed = ["landed", "reverted"].includes(merge.state) ? "done" : merge.state === "passed" ? "now" : "next";
  return [
    { name: "review", state: reviewed },
    { name: "build", state: built },
    { name: "test", state: tested },
    { name: "land", state: landed },
  ];
}
