// What the daemon takes and answers. Made by scripts/page_types.py from the code; `make docs` writes it again.

/** With `anyway`, also if what it is about has changed since. */
export interface AcceptProposal {
  anyway?: boolean;
}

/** Sessions that covey runs: those of `names`, or `count` ones with names that are free; all of them or none. */
export interface AddSessions {
  count?: number | null;
  names?: string[];
  agent?: string | null;
  role?: string | null;
  permissions?: PermissionLevel | null;
  start?: boolean;
}

/** A new task; ids in `needs_any` are needs that it goes on without when they are dropped. */
export interface AddTask {
  title: string;
  body?: string;
  kind?: Kind;
  status?: "backlog" | "todo";
  assignee?: string | null;
  role?: string | null;
  priority?: number;
  needs?: string[];
  needs_any?: string[];
  parent?: string | null;
  scope?: string[];
  do_not_touch?: string[];
  overlap?: boolean;
  done_when?: string[];
  budget?: number | null;
  batch?: string | null;
  note?: string | null;
  session?: string | null;
}

/** An agent by its name; `absent`: why its program cannot be run, null if it can. */
export interface AgentRow {
  name: string;
  absent: string | null;
}

/** Something a person should know. */
export interface AlertRow {
  id: string;
  type: string;
  message: string;
  session: string | null;
  task: string | null;
  raised: number;
}

/** What is decided, in words if need be; `about`: the part of a command that is allowed always. */
export interface AnswerQuestion {
  decision: Decision;
  text?: string;
  about?: string | null;
}

/** For whom it is asked: a session asks for itself alone. A filter of rows by session is no such field. */
export interface As {
  session?: string | null;
}

/** What a session's git is about to push: the remote by name or address, and its refs as git's refspecs name them. */
export interface AskPush {
  session?: string | null;
  remote: string;
  refs: string[];
}

/** What an agent asks the person in charge, and the answers that it proposes. */
export interface AskQuestion {
  session?: string | null;
  text: string;
  choices?: string[];
}

/** A line of a file: its text, the commit that brought it, and the task and merge that are known of that. */
export interface AskWhy {
  path: string;
  commit: string;
  text?: string;
  task?: string | null;
  merge?: string | null;
}

/** A batch: its sessions, and those of its tasks that have not ended. */
export interface BatchRow {
  name: string;
  sessions: string[];
  tasks: string[];
  over: boolean;
}

/** Why. */
export interface Because {
  reason: string;
}

/** What a person has to decide. */
export interface Block {
  session?: string | null;
  fence?: number | null;
  reason: string;
}

/** What shall happen to some tasks, to all of them or to none: `changes`, or `drop` with a reason, or `reopen`. */
export interface BulkTasks {
  ids: string[];
  changes?: EditTask | null;
  drop?: string | null;
  reopen?: boolean;
}

/** Why a task waits, or a session idles. */
export type Cause = "answer" | "attached" | "backlog" | "backoff" | "behind" | "blocked" | "budget" | "busy" | "concurrency" | "fleet-paused" | "for-others" | "for-owner" | "hot-file" | "in-review" | "leaving" | "memory" | "merging" | "needs" | "next" | "no-assignee" | "no-batch" | "no-body" | "no-daemon" | "no-role" | "no-session" | "nothing" | "other" | "outside" | "parts" | "paused" | "place" | "prose" | "provider" | "review" | "scope" | "share" | "stagger" | "stopped" | "unvouched";

/** Who claims; `overlap` goes on although another task may write the same files. */
export interface Claim {
  session?: string | null;
  overlap?: boolean;
}

/** One kind of thing: where it lies, how long it is kept, by which settings, and what of it goes, or went. */
export interface CleanKind {
  kind: string;
  count: number;
  bytes: number;
  oldest: number | null;
  some: CleanRow[];
  where: string;
  kept: string;
  settings: string[];
  proof: string;
  by: Cleaner;
}

/** One thing that goes, or went: its bytes, since when it is as it is, and why; `left` says why it is still there. */
export interface CleanRow {
  name: string;
  bytes: number;
  at: number;
  why: string;
  left: string;
  rescue: string | null;
}

/** Who removes what has had its time; `covey clean --yes` does both of the first two. */
export type Cleaner = "covey clean --yes" | "the daemon, by itself" | "the merge queue";

/** What is kept, kind by kind, and whether what had its time was removed or is only shown. */
export interface Cleaning {
  done: boolean;
  count: number;
  bytes: number;
  left: number;
  kinds: CleanKind[];
}

/** One piece of evidence: where it comes from, what it says, and how many seconds old it is. */
export interface ClueRow {
  source: string;
  text: string;
  age: number;
}

/** A comment, where its line is by now (`place`, `now`), and whether its reader has it (`state`). */
export interface CommentRow {
  id: string;
  text: string;
  place: Place | null;
  now: number | null;
  state: string;
  delivered: number | null;
  read: number | null;
  acked: number | null;
  task: string;
  commit: string | null;
  path: string | null;
  side: Side;
  line: number | null;
  lines: number;
  quote: string;
  author: string;
  written: number;
  edited: number | null;
  sent: number | null;
  to: string | null;
  message: string | null;
  back: boolean;
}

/** What the work for a task would conflict with: files in which it does with main, and other open work. */
export interface Conflicts {
  task: string;
  tip: string;
  main: string;
  conflicts: string[];
  others: MeetingRow[];
}

/** What the runs of one task, session, agent, model or day cost; `cost` is without that of `unpriced` tokens. */
export interface CostRow {
  key: string;
  runs: number;
  cost: number;
  tokens: number;
  unpriced: number;
  input: number;
  output: number;
  cache_read: number;
  cache_write: number;
}

/** Costs, the largest first, and their sum; `without_price`: the models that have none, `more`: rows left out. */
export interface Costs {
  rows: CostRow[];
  total: CostRow;
  without_price: string[];
  more: number;
}

/** What a person decided. */
export type Decision = "allow" | "always" | "deny" | "reply";

/** What a task waits for, what waits for it, and its family. */
export interface Deps {
  id: string;
  needs: Edge[];
  needed_by: Edge[];
  parent: string | null;
  children: string[];
}

/** From where a browser asks. */
export type DeviceKind = "page" | "phone";

/** A browser that joined, and when it was last heard of. */
export interface DeviceRow {
  id: string;
  seen: number | null;
  known: boolean;
  this: boolean;
  kind: DeviceKind;
  label: string;
  joined: number | null;
  revoked: number | null;
}

/** One file that differs: `patch` has its hunks, null if it is binary or has no room; `next` is where to go on. */
export interface DiffFile {
  path: string;
  old_path: string | null;
  status: string;
  plus: number;
  minus: number;
  binary: boolean;
  mode: string;
  old_mode: string | null;
  patch: string | null;
  cut: boolean;
  next: number | null;
  shortened: number;
  tasks: string[];
  written: Record<string, [number, number][]>;
}

/** One of several tasks: the files that it changes, and those in which it cannot be put together with the others. */
export interface DiffPart {
  task: string;
  title: string;
  status: Status;
  tip: string | null;
  files: string[];
  conflicts: string[];
  message: string;
}

/** What a session did, in the few words that a strip tells apart. */
export type Doing = "down" | "idle" | "limited" | "needs-you" | "paused" | "stalled" | "unknown" | "working";

/** One need of a task, or one task that needs it. */
export interface Edge {
  id: string;
  title: string;
  status: Status;
  policy: Policy;
}

/** What a draft says now. */
export interface EditComment {
  text: string;
}

/** Changes to a task: what is left out stays, null clears. */
export interface EditTask {
  title?: string;
  body?: string;
  kind?: Kind;
  status?: "backlog" | "todo";
  assignee?: string | null;
  role?: string | null;
  priority?: number;
  needs?: string[];
  needs_any?: string[];
  parent?: string | null;
  scope?: string[];
  do_not_touch?: string[];
  overlap?: boolean;
  done_when?: string[];
  budget?: number | null;
  batch?: string | null;
  note?: string;
}

/** One thing that a run said or did; `place`: the byte at which the line begins that tells it. */
export interface Entry {
  place: number;
  kind: "asks" | "cost" | "done" | "note" | "printed" | "result" | "said" | "told" | "tool";
  text: string;
  tool: string;
  about: string;
  call: string;
  edit: string;
  failed: boolean;
  model: string;
  tokens: number;
  cost: number | null;
}

/** One event of the log; `prev` is the hash of the one before, in hex. */
export interface EventRow {
  seq: number;
  time: number;
  actor: string;
  kind: string;
  subject: string;
  data: Record<string, unknown>;
  key: string | null;
  prev: string;
}

/** A test that failed and then passed on the very same tree: how often, first and last, and in which gate. */
export interface Flake {
  test: string;
  times: number;
  first: number;
  last: number;
  gate: string;
}

/** Whether the whole fleet stands still, since when and by whose word. */
export interface FleetRow {
  paused: boolean;
  by: string | null;
  since: number | null;
}

/** Which imported log is to be forgotten. */
export interface ForgetOrigin {
  log: string;
}

/** An imported log with all its events was removed, so that it can be imported again. */
export interface Forgotten {
  log: string;
  events: number;
}

/** A gate, and what it shows if it was run on main alone. */
export interface GateFull {
  id: string;
  base: string;
  commit: string;
  merges: string[];
  purpose: string;
  slot: number;
  state: GateState;
  why: string | null;
  code: number | null;
  step: string;
  seconds: number | null;
  cpu: number | null;
  failures: string[];
  fingerprint: string;
  summary: string;
  started: number;
  ended: number | null;
  verdict: TrialVerdict | null;
  told: string;
  error: string;
  advice: string;
}

/** How far the work on a task is in the queue, `failed` once a gate sent it back, and how many tests failed then. */
export interface GateNow {
  state: string;
  failed: number;
}

/** One test of one tree, and how it ended. */
export interface GateRow {
  id: string;
  base: string;
  commit: string;
  merges: string[];
  purpose: string;
  slot: number;
  state: GateState;
  why: string | null;
  code: number | null;
  step: string;
  seconds: number | null;
  cpu: number | null;
  failures: string[];
  fingerprint: string;
  summary: string;
  started: number;
  ended: number | null;
}

/** Where a gate stands. */
export type GateState = "failed" | "lost" | "passed" | "running";

/** What covey is to do with a session that it runs. */
export type Goal = "paused" | "removed" | "stopped" | "working";

/** What is allowed: a command or its first words; with another `tool`, what that is used for (empty: anything). */
export interface GrantPermit {
  tool?: string;
  about?: string;
}

/** The work that is handed in: a commit on its branch, and the text of a result. */
export interface HandIn {
  session?: string | null;
  fence?: number | null;
  result?: string | null;
  commit?: string | null;
  branch?: string | null;
}

/** Whose claim, under which fence. */
export interface Held {
  session?: string | null;
  fence?: number | null;
}

/** A file at which tasks collide again and again: how often lately, since when it is hot, and the last time. */
export interface HotFileRow {
  path: string;
  collisions: number;
  since: number;
  last: number;
}

/** What an import did: the ids by key. */
export interface ImportAnswer {
  added: Record<string, string>;
  updated: Record<string, string>;
  unchanged: Record<string, string>;
}

/** A part of another origin's log, from where ours of it ends; `more` says that further parts follow. */
export interface ImportOrigin {
  log: string;
  events: OriginEvent[];
  more?: boolean;
}

/** A part of an import. */
export interface ImportTasks {
  tasks: ImportedTask[];
}

/** A task of an import; `key` makes it the same task next time, needs may name keys, what is left out stays. */
export interface ImportedTask {
  title: string;
  body?: string;
  kind?: Kind;
  status?: "backlog" | "todo";
  assignee?: string | null;
  role?: string | null;
  priority?: number;
  needs?: string[];
  needs_any?: string[];
  parent?: string | null;
  scope?: string[];
  do_not_touch?: string[];
  overlap?: boolean;
  done_when?: string[];
  budget?: number | null;
  batch?: string | null;
  note?: string;
  key: string;
}

/** Whose mail, and whether also what was read. */
export interface Inbox {
  session?: string | null;
  all?: boolean;
  limit?: number;
  after?: number;
}

/** One thing that waits for a person; what several ask alike is one, with all their `ids` and `sessions`. */
export interface InboxItem {
  key: string;
  kind: InboxKind;
  title: string;
  since: number;
  cause: string;
  text: string;
  untested: boolean;
  why: string;
  session: string | null;
  task: string | null;
  until: number | null;
  ids: string[];
  sessions: string[];
  tasks: string[];
  parts: Part[];
  tool: string;
  about: string;
  rule: string;
  allows: string;
  choices: string[];
  decisions: string[];
}

/** What an item is about. */
export type InboxKind = "approve" | "blocked" | "landing" | "mail" | "proposal" | "question" | "queue" | "session" | "setting" | "waits";

/** A code that works once, the address that carries it, and for a phone the same as rows of a QR code. */
export interface Invitation {
  id: string;
  kind: DeviceKind;
  code: string;
  url: string;
  until: number;
  qr: string[];
  fingerprint: string | null;
}

/** Which browser shall join: one on this machine, or one beyond it; it may be given a name. */
export interface InviteDevice {
  kind?: DeviceKind;
  label?: string;
}

/** A code, and what to call the browser that shows it. */
export interface JoinDevice {
  code: string;
  label?: string;
}

/** A browser that was let in, and the secret that only it gets; none if it was known already. */
export interface JoinedDevice {
  id: string;
  seen: number | null;
  known: boolean;
  this: boolean;
  kind: DeviceKind;
  label: string;
  joined: number | null;
  revoked: number | null;
  secret: string | null;
}

/** What a task ends in: a change on main, or a report. */
export type Kind = "change" | "report";

/** The commit on main that holds the work. */
export interface Land {
  commit: string;
}

/** One move of main: from which commit to which, with which merges, after which gate, and where it was pushed. */
export interface LandingRow {
  id: string;
  branch: string;
  before: string;
  commit: string;
  merges: string[];
  gate: string | null;
  untested: boolean;
  made: number;
  remote: string | null;
  pushed: number | null;
}

/** Why the tasks of some lanes wait: how many, since when, the first of them, and the sessions that it is about. */
export interface LaneWait {
  cause: Cause;
  text: string;
  until: number | null;
  person: boolean;
  command: string;
  lanes: string[];
  count: number;
  since: number;
  tasks: string[];
  sessions: string[];
}

/** A lease, with the time at which it ends if its holder stays silent, or with what it waits for. */
export interface LeaseFull {
  id: string;
  until: number | null;
  behind: string[];
  holder: string;
  resources: string[];
  shared: boolean;
  ttl: number;
  task: string | null;
  reason: string | null;
  origin: LeasesOrigin;
  beats: boolean;
  within: string[];
  fence: number;
  state: LeaseState;
  taken: number;
  ended: number | null;
}

/** Whether a lease is in force. */
export type LeaseState = "expired" | "given" | "live" | "waiting";

/** How a lease came about. */
export type LeasesOrigin = "edit" | "hand" | "scope";

/** What keeps runs of an agent from starting, and until when in seconds since 1970, if that is known. */
export interface Limit {
  agent: string;
  until: number | null;
  what: string;
}

/** Where a line comes from: its merge, task, run, gate and landing, who approved it, and where it was written. */
export interface LineWhy {
  commit: string;
  merge: MergeRow | null;
  task: WhyTask | null;
  run: RunRow | null;
  model: string | null;
  gate: GateRow | null;
  landing: LandingRow | null;
  approved_by: string | null;
  passage: Passage | null;
}

/** A part of the alerts, the newest first. */
export interface ListAlerts {
  limit?: number;
}

/** Those of one task, or all drafts; `tip` and `base`: where their lines are in these, not in its own work. */
export interface ListComments {
  task?: string | null;
  tip?: string | null;
  base?: string | null;
}

/** By what costs are summed, and which: from a day on, until a day, of a task, of a session. */
export interface ListCosts {
  by?: "agent" | "day" | "model" | "run" | "session" | "task";
  since?: string | null;
  until?: string | null;
  task?: string | null;
  session?: string | null;
  limit?: number;
}

/** Which devices; without `all`, those that may ask now. */
export interface ListDevices {
  all?: boolean;
}

/** A part of the log; a kind that ends in a dot takes all of its kind, `newest` the last that fit. */
export interface ListEvents {
  after?: number;
  before?: number | null;
  kind?: string | null;
  subject?: string | null;
  actor?: string | null;
  since?: number | null;
  until?: number | null;
  limit?: number;
  newest?: boolean;
  origin?: string | null;
}

/** How many tests, those that flaked last first. */
export interface ListFlakes {
  limit?: number;
}

/** How many moves of main, the newest first. */
export interface ListLandings {
  limit?: number;
}

/** Which leases; with `waiting`, those too that are waited for. */
export interface ListLeases {
  session?: string | null;
  waiting?: boolean;
}

/** Which merges; without `all`, those that have not ended. */
export interface ListMerges {
  all?: boolean;
  limit?: number;
}

/** Which overlaps: those of one task, or all. */
export interface ListOverlaps {
  task?: string | null;
}

/** Which permits; without `all`, those in force. */
export interface ListPermits {
  all?: boolean;
}

/** Which proposals; without `all`, those that are open. */
export interface ListProposals {
  all?: boolean;
  limit?: number;
}

/** Which questions. */
export interface ListQuestions {
  state?: QuestionState | null;
  session?: string | null;
  limit?: number;
}

/** Which runs, the newest first. */
export interface ListRuns {
  session?: string | null;
  task?: string | null;
  limit?: number;
}

/** From when until when, at most 31 days; without a time the last twelve hours. */
export interface ListStrips {
  since?: number | null;
  until?: number | null;
  session?: string | null;
}

/** A page of the board: `session` holds or held a task, `assignee` is whom it is for. */
export interface ListTasks {
  status?: Status | null;
  session?: string | null;
  assignee?: string | null;
  open?: boolean | null;
  limit?: number;
  after?: string | null;
}

/** A part of the log: `session` and `task` take all that has to do with one. */
export interface ListTrail {
  after?: number;
  before?: number | null;
  kind?: string | null;
  subject?: string | null;
  actor?: string | null;
  since?: number | null;
  until?: number | null;
  limit?: number;
  newest?: boolean;
  origin?: string | null;
  session?: string | null;
  task?: string | null;
  kinds?: string | null;
  without?: string | null;
}

/** This moment whole. */
export interface LiveFull {
  machine: Machine;
  limits: Limit[];
  today: SpentToday;
  paused: boolean;
  waits: WaitsNow;
  sessions: LiveRow[];
}

/** One session at this moment. */
export interface LiveRow {
  session: string;
  task: string | null;
  run: string | null;
  state: SessionState;
  since: number;
  until: number | null;
  evidence: string | null;
  action: string | null;
  action_at: number | null;
  context: number | null;
  cost: number;
  tokens: number;
  memory: number;
  plus: number | null;
  minus: number | null;
  files: number | null;
  gate: GateNow | null;
  overlaps: number;
  terminal: boolean;
  waits: Told | null;
}

/** A part of what a run printed, where the next part begins, and whether it may still print more. */
export interface Logs {
  run: string;
  text: string;
  next: number;
  alive: boolean;
  transcript: boolean;
}

/** How busy the machine is: the part of its processors that works, bytes of memory in use and in all. */
export interface Machine {
  cpu: number | null;
  memory: number | null;
  memory_total: number | null;
}

/** Another task whose open work changes the same files: at the same lines, or so that git cannot merge both. */
export interface MeetingRow {
  task: string;
  title: string;
  status: Status;
  session: string | null;
  merge: string | null;
  state: MergeState | null;
  shared: string[];
  close: string[];
  conflicts: string[];
}

/** A merge with all that is known of it; `gates` are those that it was in, the newest first. */
export interface MergeFull {
  id: string;
  task: string;
  session: string;
  branch: string;
  commit: string | null;
  state: MergeState;
  approved: boolean;
  candidate: string | null;
  onto: string | null;
  untested: boolean;
  run: string | null;
  landed: string | null;
  landing: string | null;
  reverts: string | null;
  priority: number;
  needs: string[];
  paths: string[];
  against: string[];
  reason: string | null;
  cause: string;
  fingerprint: string;
  queued: number;
  ended: number | null;
  title: string;
  place: number | null;
  gate: string | null;
  waits: string | null;
  waits_for: boolean;
  stuck: boolean;
  person: boolean;
  task_status: Status;
  agent: string | null;
  approved_by: string | null;
  gates: GateRow[];
  landed_by: LandingRow | null;
  group: string[];
  reverted_by: string | null;
  cost: number;
  tokens: number;
  unpriced: number;
}

/** One entry of the merge queue as it stands in the train: its place, what tests it now, and for what it waits. */
export interface MergeLine {
  id: string;
  task: string;
  session: string;
  branch: string;
  commit: string | null;
  state: MergeState;
  approved: boolean;
  candidate: string | null;
  onto: string | null;
  untested: boolean;
  run: string | null;
  landed: string | null;
  landing: string | null;
  reverts: string | null;
  priority: number;
  needs: string[];
  paths: string[];
  against: string[];
  reason: string | null;
  cause: string;
  fingerprint: string;
  queued: number;
  ended: number | null;
  title: string;
  place: number | null;
  gate: string | null;
  waits: string | null;
  waits_for: boolean;
  stuck: boolean;
  person: boolean;
}

/** One entry of the merge queue. */
export interface MergeRow {
  id: string;
  task: string;
  session: string;
  branch: string;
  commit: string | null;
  state: MergeState;
  approved: boolean;
  candidate: string | null;
  onto: string | null;
  untested: boolean;
  run: string | null;
  landed: string | null;
  landing: string | null;
  reverts: string | null;
  priority: number;
  needs: string[];
  paths: string[];
  against: string[];
  reason: string | null;
  cause: string;
  fingerprint: string;
  queued: number;
  ended: number | null;
}

/** Where a merge stands. */
export type MergeState = "landed" | "passed" | "queued" | "rejected" | "reverted" | "review" | "testing" | "withdrawn";

/** Why a merge is where it is, in sentences, and what can be done about it; `retry`: to try it again would help. */
export interface MergeWhy {
  merge: string;
  task: string;
  state: string;
  because: string[];
  next: string[];
  retry: boolean;
}

/** A message as one reader sees it; `waits` says why who shall be woken is not, `readers` whom it has reached. */
export interface MessageFull {
  id: string;
  seq: number;
  text: string;
  read: number | null;
  delivered: number | null;
  acked: number | null;
  waits: string | null;
  readers: ReadingRow[];
  to: string;
  subject: string | null;
  task: string | null;
  wants_ack: boolean;
  wake: boolean;
  sender: string;
  sent: number;
}

/** A state in which a session was, since when, and for what evidence. */
export interface Moment {
  at: number;
  state: string;
  evidence: string;
}

/** Where a task shall stand: right above a task, right below one, between the two, or `to` an end of its column. */
export interface MoveTask {
  above?: string | null;
  below?: string | null;
  to?: "first" | "last" | null;
  priority?: number | null;
}

/** A session from outside, which without `wip` holds any number of tasks, or with an `agent` one that covey runs. */
export interface NewSession {
  name: string;
  role?: string | null;
  wip?: number | null;
  agent?: string | null;
  permissions?: PermissionLevel | null;
}

/** A remark on a task. */
export interface Note {
  by: string;
  at: number;
  text: string;
}

/** A request that carries nothing. */
export type Nothing = {  };

/** What new sessions can be: agents, those that can be run first; names that are free; and how many more may be. */
export interface Offer {
  agent: string;
  agents: AgentRow[];
  permissions: PermissionLevel;
  names: string[];
  room: number;
  most: number;
  stopped: string[];
  stopped_together: string[];
}

/** An event of another origin: `data` as the text that it is, and `withheld` if something of it was left out. */
export interface OriginEvent {
  seq: number;
  time: number;
  actor: string;
  kind: string;
  subject: string;
  data: string;
  key: string | null;
  prev: string;
  hash: string;
  withheld?: boolean;
}

/** An imported log: its last event, that event's hash, and how many events are new by this import. */
export interface OriginsOrigin {
  log: string;
  seq: number;
  hash: string;
  events: number;
}

/** What a run came to. */
export type Outcome = "crashed" | "failed" | "handed-in" | "lost" | "put-off" | "stopped";

/** How close two branches come to each other. */
export type OverlapLevel = "conflict" | "file" | "hunk";

/** Two open tasks whose branches overlap, with their titles and who is at work on them; `other` may be main. */
export interface OverlapRow {
  id: string;
  one_title: string | null;
  one_session: string | null;
  other_title: string | null;
  other_session: string | null;
  one: string;
  other: string;
  level: OverlapLevel;
  files: string[];
  found: number;
  changed: number;
}

/** The open branches that overlap, and the files that are hot. */
export interface Overlaps {
  overlaps: OverlapRow[];
  hot: HotFileRow[];
}

/** One of several that ask the same: what a decision of it alone is sent to, and whose it is. */
export interface Part {
  id: string;
  since: number;
  session: string | null;
  task: string | null;
  until: number | null;
}

/** A place in the transcript of a run: the number of its line, when that was said if it is known, and what is near. */
export interface Passage {
  run: string;
  session: string;
  line: number;
  at: number | null;
  exact: boolean;
  lines: string[];
}

/** Why, if there is something to say. */
export interface Perhaps {
  reason?: string | null;
}

/** Whether something may be done now. */
export type Permission = "allow" | "ask" | "deny";

/** How much an agent may do by itself. */
export type PermissionLevel = "ask" | "edits" | "full";

/** What every agent may do here without asking. */
export interface PermitRow {
  id: string;
  tool: string;
  about: string;
  by: string;
  granted: number;
  revoked: number | null;
}

/** Whether something may be done now, why, and the question that waits for a person if there is one. */
export interface Permitted {
  answer: Permission;
  why: string;
  question: string | null;
}

/** Where the line of a comment is by now. */
export type Place = "here" | "moved" | "outdated";

/** What happens to a task when this need of it is dropped. */
export type Policy = "any" | "block";

/** What is wrong in one sentence, and what to do about it. */
export interface Problem {
  error: string;
  hint: string;
}

/** The project at a glance. */
export interface ProjectStatus {
  version: string;
  project: string;
  log: string;
  seq: number;
  counts: Record<string, number>;
  sessions: SessionFull[];
  leases: number;
  unread: number;
  merges: number;
  questions: number;
  paused: boolean;
  memory: number;
  today: SpentToday;
  stays_for: string[];
  waits: LaneWait[];
  idle: SessionWait[];
}

/** What a session asks a person to do; `stale`: what it is about has changed since. */
export interface ProposalRow {
  id: string;
  what: string;
  asked: Record<string, unknown>;
  changes: ProposedChange[];
  stale: boolean;
  session: string;
  verb: string;
  target: string | null;
  why: string;
  state: ProposalState;
  reason: string | null;
  by: string | null;
  made: number;
  ended: number | null;
}

/** Where a proposal stands. */
export type ProposalState = "accepted" | "declined" | "open" | "withdrawn";

/** One field of what is proposed: how it was then and is now, if there is something to change, and how it would be. */
export interface ProposedChange {
  field: string;
  was: string;
  now: string;
  to: string;
}

/** Blobs whose time was over were removed; the log itself is kept whole. */
export interface Pruned {
  blobs: number;
  size: number;
}

/** A question, when it is denied if nobody answers, and what was decided. */
export interface QuestionRow {
  id: string;
  session: string;
  task: string | null;
  run: string | null;
  wants: Wants;
  text: string;
  tool: string;
  about: string;
  choices: string[];
  until: number | null;
  state: QuestionState;
  decision: Decision | null;
  answer: string | null;
  by: string | null;
  told: boolean;
  asked: number;
  ended: number | null;
}

/** Where a question stands. */
export type QuestionState = "answered" | "expired" | "open" | "withdrawn";

/** A branch from outside that shall land: its last commit by its whole hash, and the task that is made of it. */
export interface QueueBranch {
  branch: string;
  commit: string;
  title: string;
  body?: string;
  priority?: number;
}

/** The train at a glance: the gates that run, what wants to land in its order, and what came of the last ones. */
export interface QueueFull {
  branch: string;
  strategy: string;
  slots: number;
  base: string | null;
  proven: boolean;
  paused: boolean;
  frozen: boolean;
  halted: string | null;
  gates: string[];
  paused_why: string | null;
  paused_by: string | null;
  paused_since: number | null;
  frozen_why: string | null;
  frozen_by: string | null;
  frozen_since: number | null;
  checked: boolean;
  troubles: string[];
  limits: string[];
  fleet_paused: boolean;
  running: GateRow[];
  merges: MergeLine[];
  landed_hour: number;
  ended: number;
  rejected: number;
  gate_seconds: number | null;
  last: LandingRow | null;
}

/** How the queue stands: what keeps it from testing (paused, halted) or from moving main (frozen), and why. */
export interface QueueRow {
  branch: string;
  strategy: string;
  slots: number;
  base: string | null;
  proven: boolean;
  paused: boolean;
  frozen: boolean;
  halted: string | null;
  gates: string[];
  paused_why: string | null;
  paused_by: string | null;
  paused_since: number | null;
  frozen_why: string | null;
  frozen_by: string | null;
  frozen_since: number | null;
}

/** Which part: one file, from a line of its patch on, with more around; `working`: also what is not committed. */
export interface ReadDiff {
  path?: string | null;
  since?: number;
  context?: number;
  working?: boolean;
}

/** Which run (default: the last), from which byte on; a negative `since` counts from the end. */
export interface ReadEntries {
  run?: string | null;
  since?: number;
}

/** From which byte on; a negative one counts from the end. */
export interface ReadGate {
  since?: number;
}

/** Which run (default: the last), from which byte on; a negative `since` counts from the end. */
export interface ReadLogs {
  run?: string | null;
  since?: number;
  raw?: boolean;
}

/** The tasks whose work is put together in this order, parted by commas; of one file as with one task. */
export interface ReadTogether {
  tasks: string;
  path?: string | null;
  since?: number;
  context?: number;
}

/** A part of what a run said and did, between two bytes, and whether it may still say more. */
export interface Reading {
  run: string;
  entries: Entry[];
  start: number;
  next: number;
  alive: boolean;
}

/** What became of a message with one who got it: when it was read, seen in its conversation, acknowledged. */
export interface ReadingRow {
  reader: string;
  read: number;
  acked: number | null;
  delivered: number | null;
}

/** Why the task goes back, if anything went wrong. */
export interface Release {
  session?: string | null;
  fence?: number | null;
  reason?: string | null;
}

/** Whether a session at work is removed too; its work is kept either way. */
export interface RemoveSession {
  force?: boolean;
}

/** Why work shall leave main again; with `reopen`, its task is open again once it has left. */
export interface Revert {
  reason?: string | null;
  reopen?: boolean;
}

/** Work that can be looked at: how much it changes, and whether git could not merge it as things are. */
export interface ReviewRow {
  task: string;
  merge: string | null;
  session: string | null;
  waits: boolean;
  tip: string | null;
  plus: number;
  minus: number;
  files: number;
  conflicts: string[];
}

/** One start of an agent program; `cost` is in dollars, without those of `unpriced` tokens. */
export interface RunRow {
  id: string;
  session: string;
  task: string;
  fence: number;
  agent: string;
  base: string | null;
  conversation: string | null;
  ending: string | null;
  outcome: Outcome | null;
  code: number | null;
  what: string | null;
  commit: string | null;
  begun: number;
  ended: number | null;
  cost: number;
  tokens: number;
  unpriced: number;
}

/** Which drafts on a task, else all of them, with some words; `back`: the work goes back to its author with them. */
export interface SendComments {
  task: string;
  ids?: string[] | null;
  text?: string;
  back?: boolean;
}

/** A message to a session, role:NAME, everyone or owner; with `wake` a session that covey runs is told at once. */
export interface SendMail {
  session?: string | null;
  to: string;
  text: string;
  subject?: string | null;
  task?: string | null;
  wants_ack?: boolean;
  wake?: boolean;
}

/** What is typed to the program of a session. */
export interface SendText {
  text: string;
}

/** What became of comments that were sent: to whom, in which messages, and why they wait, if they do. */
export interface SentComments {
  task: string;
  status: Status;
  to: string | null;
  messages: string[];
  waits: string | null;
  comments: CommentRow[];
}

/** A session with the tasks that it holds, its run, when it was last heard of, and what it did last. */
export interface SessionFull {
  name: string;
  kind: SessionKind;
  role: string | null;
  wip: number | null;
  agent: string | null;
  batch: string | null;
  permissions: string | null;
  goal: Goal;
  state: SessionState;
  evidence: string | null;
  created: number;
  updated: number;
  removed: boolean;
  tasks: string[];
  run: string | null;
  seen: number | null;
  last_action: EventRow | null;
  memory: number;
  cost: number;
  tokens: number;
  unpriced: number;
}

/** Who keeps a session alive. */
export type SessionKind = "outside" | "person" | "run";

/** What a session is doing, as its evidence says. */
export type SessionState = "compacting" | "dead" | "idle" | "limited" | "needs-you" | "paused" | "stalled" | "starting" | "working";

/** Why one session is not at work. */
export interface SessionWait {
  cause: Cause;
  text: string;
  until: number | null;
  person: boolean;
  command: string;
  session: string;
}

/** One setting: its value and its default as covey.toml would spell them, and in which line of it it is set. */
export interface SettingRow {
  name: string;
  value: string;
  default: string;
  is_set: boolean;
  line: number | null;
  meaning: string;
}

/** One table of covey.toml by its name, such as `merge` or `agents.sh`, and what it is about. */
export interface SettingTable {
  name: string;
  title: string;
  settings: SettingRow[];
}

/** All settings in force, and the file in which they are changed. */
export interface SettingsShown {
  file: string;
  problem: string;
  agent: string;
  tables: SettingTable[];
}

/** Which text a line belongs to: that before the change, or that after it. */
export type Side = "new" | "old";

/** What a session did from one time until another. */
export interface Span {
  at: number;
  until: number;
  state: Doing;
  evidence: string | null;
}

/** What was used today in all, and what may be, if there is a limit. */
export interface SpentToday {
  day: string;
  cost: number;
  tokens: number;
  unpriced: number;
  without_price: string[];
  budget: number | null;
  budget_tokens: number | null;
}

/** Sessions for the tasks of a batch; with `all`, every task that waits or is about to land joins it first. */
export interface StartBatch {
  name: string;
  sessions: number;
  agent?: string | null;
  all?: boolean;
}

/** Brings back those that were stopped together last; with `all`, every session that is stopped. */
export interface StartFleet {
  all?: boolean;
}

/** Where a task stands on the board. */
export type Status = "backlog" | "blocked" | "doing" | "done" | "dropped" | "merging" | "review" | "todo";

/** One session over the time: at most 500 spans, with gaps where there was no such session, and its last runs. */
export interface StripRow {
  session: string;
  spans: Span[];
  runs: StripRun[];
}

/** A run that was under way in the time; one that has not ended has no `until`. */
export interface StripRun {
  run: string;
  task: string;
  at: number;
  until: number | null;
  outcome: Outcome | null;
}

/** A lease on path globs or names such as port:3000; `ttl` in seconds. */
export interface TakeLease {
  session?: string | null;
  resources: string[];
  shared?: boolean;
  ttl?: number | null;
  task?: string | null;
  reason?: string | null;
  wait?: boolean;
  beats?: boolean;
  within?: string[];
}

/** What the work for a task changes, or has changed on main; without a `tip` there is none yet. */
export interface TaskDiff {
  task: string;
  branch: string;
  merge: string | null;
  base: string | null;
  tip: string | null;
  landed: boolean;
  dirty: boolean;
  working: boolean;
  files: DiffFile[];
  plus: number;
  minus: number;
  more: number;
}

/** A task with all that is known of it; `until` is when an outside session's claim ends if it stays silent. */
export interface TaskFull {
  id: string;
  title: string;
  status: Status;
  session: string | null;
  rank: number;
  needs: string[];
  needs_any: string[];
  fence: number;
  ready: boolean;
  reason: string | null;
  commit: string | null;
  failed_tries: number;
  sent_back: number;
  created: number;
  updated: number;
  claimed: number | null;
  ended: number | null;
  added_by: string;
  lane: string;
  kind: Kind;
  assignee: string | null;
  role: string | null;
  priority: number;
  parent: string | null;
  scope: string[];
  do_not_touch: string[];
  overlap: boolean;
  batch: string | null;
  body: string;
  result: string | null;
  result_by: string | null;
  until: number | null;
  reverted: string | null;
  cost: number;
  tokens: number;
  unpriced: number;
  done_when: string[];
  budget: number | null;
  key: string | null;
  author: string;
  front: string | null;
  tries: Try[];
  notes: Note[];
  unmet: number;
  open_children: number;
}

/** A task as the board shows it; `ready` says that nothing else has to end before it. */
export interface TaskRow {
  id: string;
  title: string;
  status: Status;
  session: string | null;
  rank: number;
  needs: string[];
  needs_any: string[];
  fence: number;
  ready: boolean;
  reason: string | null;
  commit: string | null;
  failed_tries: number;
  sent_back: number;
  created: number;
  updated: number;
  claimed: number | null;
  ended: number | null;
  added_by: string;
  lane: string;
  kind: Kind;
  assignee: string | null;
  role: string | null;
  priority: number;
  parent: string | null;
  scope: string[];
  do_not_touch: string[];
  overlap: boolean;
  batch: string | null;
}

/** A task whole, with why it waits, null if it does not; a session is not told that of the others. */
export interface TaskShown {
  id: string;
  title: string;
  status: Status;
  session: string | null;
  rank: number;
  needs: string[];
  needs_any: string[];
  fence: number;
  ready: boolean;
  reason: string | null;
  commit: string | null;
  failed_tries: number;
  sent_back: number;
  created: number;
  updated: number;
  claimed: number | null;
  ended: number | null;
  added_by: string;
  lane: string;
  kind: Kind;
  assignee: string | null;
  role: string | null;
  priority: number;
  parent: string | null;
  scope: string[];
  do_not_touch: string[];
  overlap: boolean;
  batch: string | null;
  body: string;
  result: string | null;
  result_by: string | null;
  until: number | null;
  reverted: string | null;
  cost: number;
  tokens: number;
  unpriced: number;
  done_when: string[];
  budget: number | null;
  key: string | null;
  author: string;
  front: string | null;
  tries: Try[];
  notes: Note[];
  unmet: number;
  open_children: number;
  waits: Wait | null;
}

/** Why one task waits. */
export interface TaskWait {
  cause: Cause;
  text: string;
  until: number | null;
  person: boolean;
  command: string;
  task: string;
}

/** The run that has a terminal, whether a person has taken it over, and the command that shows it. */
export interface TerminalRow {
  run: string | null;
  person: boolean;
  command: string[];
  used: boolean;
  can_attach: boolean;
}

/** What main would be with the work of several tasks in it, without that which conflicts. */
export interface Together {
  tasks: DiffPart[];
  base: string;
  tip: string;
  files: DiffFile[];
  plus: number;
  minus: number;
  more: number;
}

/** A session's token; it is shown once, and a new one makes the old ones worthless. */
export interface Token {
  session: string;
  token: string;
  proof: string;
}

/** A sentence that says why something waits, and until when if that is known. */
export interface Told {
  text: string;
  until: number | null;
}

/** One event as a sentence, and the task that it has to do with, if it is one. */
export interface TrailRow {
  seq: number;
  text: string;
  task: string | null;
  time: number;
  actor: string;
  kind: string;
  subject: string;
}

/** What came of a try. */
export type TrialVerdict = "broken" | "empty" | "fails" | "lost" | "works";

/** One attempt that did not end well, and what went wrong. */
export interface Try {
  session: string;
  at: number;
  what: string;
  by: string;
}

/** The command to try in place of `merge.check`; without one, the gate as it is set. */
export interface TryGate {
  check?: string | null;
}

/** Why a task waits, or a session idles: its cause, a sentence, until when if that is known, and what to do. */
export interface Wait {
  cause: Cause;
  text: string;
  until: number | null;
  person: boolean;
  command: string;
}

/** Why nothing happens: the tasks of a page of the board that wait, all that are ready by lane, idle sessions. */
export interface Waits {
  tasks: TaskWait[];
  lanes: LaneWait[];
  sessions: SessionWait[];
}

/** Why tasks that are ready wait: in the largest lanes, and in other words for some tasks near their heads. */
export interface WaitsNow {
  lanes: Record<string, Told>;
  tasks: Record<string, Told>;
}

/** What a question wants. */
export type Wants = "answer" | "permission";

/** What the watchdog thinks of a session: its state, the rule that decided, the evidence, and what came before. */
export interface Why {
  session: string;
  state: SessionState;
  evidence: string | null;
  since: number;
  until: number | null;
  rule: string | null;
  action: string | null;
  clues: ClueRow[];
  run: string | null;
  task: string | null;
  history: Moment[];
  waits: SessionWait | null;
}

/** The task for which a line was written. */
export interface WhyTask {
  id: string;
  title: string;
  body: string;
  done_when: string[];
  status: Status;
}

/** A draft: on a line of a file as it is, or with `side` old was, in a commit; else on the file, or on it all. */
export interface WriteComment {
  task: string;
  text: string;
  path?: string | null;
  side?: Side;
  line?: number | null;
  lines?: number;
  commit?: string | null;
  quote?: string | null;
}

/** What GET answers. */
export interface GetAnswers {
  "/api/alerts": AlertRow[];
  "/api/batches/{}": BatchRow;
  "/api/board": TaskRow[];
  "/api/board/{}": TaskShown;
  "/api/board/{}/conflicts": Conflicts;
  "/api/board/{}/deps": Deps;
  "/api/board/{}/diff": TaskDiff;
  "/api/clean": Cleaning;
  "/api/comments": CommentRow[];
  "/api/costs": Costs;
  "/api/devices": DeviceRow[];
  "/api/diff": Together;
  "/api/events": string;
  "/api/flakes": Flake[];
  "/api/gates/{}": GateFull;
  "/api/gates/{}/log": Logs;
  "/api/inbox": InboxItem[];
  "/api/landings": LandingRow[];
  "/api/leases": LeaseFull[];
  "/api/leases/{}": LeaseFull;
  "/api/live": LiveFull;
  "/api/log": EventRow[];
  "/api/mail": MessageFull[];
  "/api/mail/{}": MessageFull;
  "/api/merges": MergeLine[];
  "/api/merges/{}": MergeFull;
  "/api/merges/{}/why": MergeWhy;
  "/api/overlaps": Overlaps;
  "/api/permits": PermitRow[];
  "/api/proof": { proof: string; life: string; };
  "/api/proposals": ProposalRow[];
  "/api/proposals/{}": ProposalRow;
  "/api/questions": QuestionRow[];
  "/api/questions/{}": QuestionRow;
  "/api/queue": QueueFull;
  "/api/review": ReviewRow[];
  "/api/runs": RunRow[];
  "/api/sessions": SessionFull[];
  "/api/sessions/offer": Offer;
  "/api/sessions/{}/logs": Logs;
  "/api/sessions/{}/terminal": TerminalRow;
  "/api/sessions/{}/transcript": Reading;
  "/api/sessions/{}/why": Why;
  "/api/settings": SettingsShown;
  "/api/status": ProjectStatus;
  "/api/strips": StripRow[];
  "/api/trail": TrailRow[];
  "/api/waits": Waits;
  "/api/why": LineWhy;
}

/** What POST answers. */
export interface PostAnswers {
  "/api/batches": BatchRow;
  "/api/batches/{}/stop": BatchRow;
  "/api/board": TaskFull;
  "/api/board/bulk": TaskRow[];
  "/api/board/import": ImportAnswer;
  "/api/board/{}/block": TaskFull;
  "/api/board/{}/claim": TaskFull;
  "/api/board/{}/drop": TaskFull;
  "/api/board/{}/handin": TaskFull;
  "/api/board/{}/move": TaskFull;
  "/api/board/{}/release": TaskFull;
  "/api/board/{}/renew": TaskFull;
  "/api/board/{}/reopen": TaskFull;
  "/api/claim": TaskFull;
  "/api/clean": Cleaning;
  "/api/comments": CommentRow;
  "/api/comments/send": SentComments;
  "/api/comments/{}/remove": CommentRow;
  "/api/devices/invite": Invitation;
  "/api/devices/join": JoinedDevice;
  "/api/devices/{}/revoke": DeviceRow;
  "/api/gates/try": GateFull;
  "/api/gates/{}/stop": GateFull;
  "/api/leases": LeaseFull;
  "/api/leases/{}/give": LeaseFull;
  "/api/leases/{}/renew": LeaseFull;
  "/api/log/forget": Forgotten;
  "/api/log/import": OriginsOrigin;
  "/api/log/prune": Pruned;
  "/api/mail": MessageFull;
  "/api/mail/{}/ack": MessageFull;
  "/api/mail/{}/read": MessageFull;
  "/api/merges": MergeRow;
  "/api/merges/{}/approve": MergeRow;
  "/api/merges/{}/drop": MergeRow;
  "/api/merges/{}/hold": MergeRow;
  "/api/merges/{}/land": MergeRow;
  "/api/merges/{}/reject": MergeRow;
  "/api/merges/{}/retry": MergeRow;
  "/api/merges/{}/revert": MergeRow;
  "/api/pause": FleetRow;
  "/api/permits": PermitRow;
  "/api/permits/{}/revoke": PermitRow;
  "/api/proposals/{}/accept": ProposalRow;
  "/api/proposals/{}/decline": ProposalRow;
  "/api/proposals/{}/withdraw": ProposalRow;
  "/api/pushes": Permitted;
  "/api/questions": QuestionRow;
  "/api/questions/{}/answer": QuestionRow;
  "/api/questions/{}/take": QuestionRow;
  "/api/queue/freeze": QueueRow;
  "/api/queue/pause": QueueRow;
  "/api/queue/resume": QueueRow;
  "/api/queue/thaw": QueueRow;
  "/api/resume": FleetRow;
  "/api/sessions": SessionFull;
  "/api/sessions/add": SessionFull[];
  "/api/sessions/{}/attach": SessionFull;
  "/api/sessions/{}/giveback": SessionFull;
  "/api/sessions/{}/pause": SessionFull;
  "/api/sessions/{}/remove": SessionFull;
  "/api/sessions/{}/restart": SessionFull;
  "/api/sessions/{}/resume": SessionFull;
  "/api/sessions/{}/send": RunRow;
  "/api/sessions/{}/start": SessionFull;
  "/api/sessions/{}/stop": SessionFull;
  "/api/sessions/{}/token": Token;
  "/api/start": SessionFull[];
  "/api/stop": SessionFull[];
}

/** What POST takes. */
export interface PostBodies {
  "/api/batches": StartBatch;
  "/api/batches/{}/stop": Nothing;
  "/api/board": AddTask;
  "/api/board/bulk": BulkTasks;
  "/api/board/import": ImportTasks;
  "/api/board/{}/block": Block;
  "/api/board/{}/claim": Claim;
  "/api/board/{}/drop": Perhaps;
  "/api/board/{}/handin": HandIn;
  "/api/board/{}/move": MoveTask;
  "/api/board/{}/release": Release;
  "/api/board/{}/renew": Held;
  "/api/board/{}/reopen": Nothing;
  "/api/claim": Claim;
  "/api/clean": Nothing;
  "/api/comments": WriteComment;
  "/api/comments/send": SendComments;
  "/api/comments/{}/remove": Nothing;
  "/api/devices/invite": InviteDevice;
  "/api/devices/join": JoinDevice;
  "/api/devices/{}/revoke": Nothing;
  "/api/gates/try": TryGate;
  "/api/gates/{}/stop": Nothing;
  "/api/leases": TakeLease;
  "/api/leases/{}/give": Held;
  "/api/leases/{}/renew": Held;
  "/api/log/forget": ForgetOrigin;
  "/api/log/import": ImportOrigin;
  "/api/log/prune": Nothing;
  "/api/mail": SendMail;
  "/api/mail/{}/ack": As;
  "/api/mail/{}/read": As;
  "/api/merges": QueueBranch;
  "/api/merges/{}/approve": Nothing;
  "/api/merges/{}/drop": Perhaps;
  "/api/merges/{}/hold": Perhaps;
  "/api/merges/{}/land": Land;
  "/api/merges/{}/reject": Because;
  "/api/merges/{}/retry": Nothing;
  "/api/merges/{}/revert": Revert;
  "/api/pause": Nothing;
  "/api/permits": GrantPermit;
  "/api/permits/{}/revoke": Nothing;
  "/api/proposals/{}/accept": AcceptProposal;
  "/api/proposals/{}/decline": Perhaps;
  "/api/proposals/{}/withdraw": Nothing;
  "/api/pushes": AskPush;
  "/api/questions": AskQuestion;
  "/api/questions/{}/answer": AnswerQuestion;
  "/api/questions/{}/take": As;
  "/api/queue/freeze": Perhaps;
  "/api/queue/pause": Perhaps;
  "/api/queue/resume": Nothing;
  "/api/queue/thaw": Nothing;
  "/api/resume": Nothing;
  "/api/sessions": NewSession;
  "/api/sessions/add": AddSessions;
  "/api/sessions/{}/attach": Nothing;
  "/api/sessions/{}/giveback": Nothing;
  "/api/sessions/{}/pause": Nothing;
  "/api/sessions/{}/remove": RemoveSession;
  "/api/sessions/{}/restart": Nothing;
  "/api/sessions/{}/resume": Nothing;
  "/api/sessions/{}/send": SendText;
  "/api/sessions/{}/start": Nothing;
  "/api/sessions/{}/stop": Nothing;
  "/api/sessions/{}/token": Nothing;
  "/api/start": StartFleet;
  "/api/stop": Nothing;
}

/** What PATCH answers. */
export interface PatchAnswers {
  "/api/board/{}": TaskFull;
  "/api/comments/{}": CommentRow;
}

/** What PATCH takes. */
export interface PatchBodies {
  "/api/board/{}": EditTask;
  "/api/comments/{}": EditComment;
}
