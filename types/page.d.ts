// What the page knows, under the names that its modules use. What the daemon answers is described in rest.d.ts.
import type { Component } from "./vendor/preact.js";
import type * as rest from "./rest.js";

/** A column of the board; dropped tasks have one only while somebody looks for them. */
export type ColumnId = "backlog" | "todo" | "doing" | "needs" | "review" | "merging" | "done" | "dropped";

/** The columns to whose head a new task is added. */
export type NewTaskColumn = "backlog" | "todo";

/** A task as the board has it, with what else is known of it if it was read by itself. */
export type Task = rest.TaskRow & Partial<Omit<rest.TaskShown, keyof rest.TaskRow>>;

/** A session as the stream tells it. */
export type Session = Omit<
  rest.SessionFull,
  "tasks" | "run" | "seen" | "last_action" | "memory" | "cost" | "tokens" | "unpriced"
>;

/** What a session does at this moment. */
export type Live = rest.LiveRow;

/** A merge as the queue lists it, with what else is known of it if it was read by itself. */
export type Merge = rest.MergeLine & Partial<Omit<rest.MergeFull, keyof rest.MergeLine>>;

/** A gate as the queue lists it, with what else is known of it if it was read by itself. */
export type GateRun = rest.GateRow & Partial<Omit<rest.GateFull, keyof rest.GateRow>>;
export type Comment = rest.CommentRow;
/** How work meets main and all that is open. */
export type Meetings = rest.Conflicts;
export type LogRow = rest.TrailRow;

/** One thing that waits for a person. In a list, `within` is the group that it is a member of. */
export type InboxItem = rest.InboxItem & { within?: string; isSaid?: boolean };

/** Several things that wait for a person for the same reason. */
export interface InboxGroup {
  key: string;
  kind: rest.InboxKind;
  items: InboxItem[];
  members: InboxItem[];
  since: number;
  within?: undefined;
}

/** A file of a diff; `whole` and `print` are the page's own: whether all of it is shown, and what it was when it was seen. */
export type DiffFile = rest.DiffFile & { whole?: boolean; print?: string };

/** What was spent, in each way of adding it up. */
export type CostsBy = Record<"day" | "task" | "session" | "model", rest.Costs>;

/** How the daemon ended, and how many of its agents were at work then. */
export interface Ending {
  why: string;
  agents: number;
}

/** What the stream tells of this moment; what has not changed is left out. */
export type LiveNews = Partial<rest.LiveFull> & { gone?: string[] };

/** An event of the stream with its data. */
export interface News {
  counts: Record<string, number>;
  sessions: Session[];
  board: Task[];
  live: LiveNews;
  alerts: Pick<rest.AlertRow, "type" | "session" | "message">;
  invalidate: { type: string };
  heartbeat: unknown;
  goodbye: Ending;
}

/** The stream of what happens; what it told before somebody listened is kept for whoever does. */
export interface Stream {
  close(): void;
  listen(take: (event: MessageEvent<string>) => void): void;
}

/** Where the page is: a view, and what it shows. `from` is what had the focus before. */
export interface Whereabouts {
  place: string;
  what: string | null;
  from?: Element | null;
}

/** A view, which draws what the address names. */
export type View = Component<{ what: string | null }>;

/** A view that one can go to. */
export interface ViewPlace {
  id: string;
  title: string;
  keys: string;
  also?: string;
  load: () => Promise<{ View: View }>;
}

/** Takes a path as a request has it to the one that rest.d.ts lists: `/api/board/AF-1?x=1` is `/api/board/{}`. */
export type Route<Path extends string> = Path extends `${infer Plain}?${string}` ? Parts<Plain> : Parts<Path>;
type Parts<Path extends string> = Path extends `${infer Head}/${infer Rest}`
  ? `${Part<Head>}/${Parts<Rest>}`
  : Part<Path>;
type Part<Text extends string> = string extends Text ? "{}" : Text;

/** What a request is answered. A path that is not listed answers what nobody knows. */
export type Answer<Answers, Path extends string> = Route<Path> extends keyof Answers ? Answers[Route<Path>] : unknown;

/** What a request takes with it. */
export type Body<Bodies, Path extends string> = Route<Path> extends keyof Bodies ? Bodies[Route<Path>] : object;

/** A list that the daemon gave a page of, with how many there are in all. */
export type Paged<Said> = Said extends (infer Row)[] ? Row[] & { total?: number } : Said;

// The board

/** One condition of a filter: a field, what it has to be (or how it is compared), and with which number. */
export type FilterField = [name: string, what: string, than?: number];

/** What a search text asks for. */
export interface Filter {
  words: string[];
  fields: FilterField[];
  not: { words: string[]; fields: FilterField[] } | null;
}

/** What tasks of a list are compared by. */
export type SortKey = string | number | [string, number];

/** How the list of tasks is ordered and grouped. */
export interface ListLook {
  sort: string;
  down: boolean;
  group: string;
  folded: string[];
}

/** What a list has to be told about tasks. */
export interface ListFacts {
  column(task: Task): ColumnId;
  since(task: Task): number;
  cost(task: Task): number;
  title(id: string): string;
}

/** What a list can be sorted by. */
export interface Sort {
  id: string;
  title: string;
  down: boolean;
  key(task: Task, facts: ListFacts): SortKey | null;
}

/** What a list can be grouped by; the first way has no key and makes no groups. */
export interface Grouping {
  id: string;
  title: string;
  key?(task: Task, facts: ListFacts): string | null;
  words?(key: string, facts: ListFacts): string;
  order?(key: string): number;
  none?: string;
}

/** The head of a group of a list. */
export interface GroupHead {
  group: string;
  title: string;
  count: number;
  folded: boolean;
}

/** A list of tasks as it is drawn. */
export interface TaskList {
  rows: (GroupHead | Task)[];
  tasks: Task[];
  places: Map<string, number>;
}

/** Where a task stands: in a column of the board, or in the list. */
export interface Standing {
  column: string;
  index: number;
  fresh?: boolean;
}

/** What was changed in a task; null clears a field. */
export type Changes = Omit<rest.EditTask, "status"> & { status?: rest.Status };

export interface EditStep {
  kind: "edit";
  id: string;
  changes: Changes;
}
/** One thing that is done to a task, and can be taken back. */
export type Step =
  | EditStep
  | { kind: "move"; id: string; below?: string | null; above?: string | null; priority?: number }
  | { kind: "drop" | "block"; id: string; reason: string }
  | { kind: "reopen"; id: string };

/** A step of any kind, by its parts. */
export interface StepParts {
  kind: Step["kind"];
  id: string;
  changes?: Changes;
  below?: string | null;
  above?: string | null;
  priority?: number;
  reason?: string;
}

/** A request that steps lead to. */
export interface Call {
  method: string;
  path: string;
  body: unknown;
  ids: string[];
}

/** The fields that something left behind, by task. */
export type Left = Record<string, Record<string, unknown>>;

/** Something that was done and can be taken back: its words, its steps, and what it left behind. */
export interface Entry {
  label: string;
  redo: Step[];
  undo: Step[];
  left: Left;
  leftBack?: Left;
}

/** What is under a card that is dragged: a session, or a place in a column, and whether it may be dropped there. */
export interface DropTarget {
  session?: string | null;
  column?: string;
  index?: number;
  list?: Element | null;
  element: HTMLElement;
  why: string | null;
  says?: string;
  ordered?: boolean;
}

// Review

/** A row of a patch; a line number is null where the row is not in that text. */
export interface DiffRow {
  kind: "hunk" | "same" | "plus" | "minus" | "note";
  old: number | null;
  new: number | null;
  text: string;
}

/** Two rows side by side, or one for both. */
export interface RowPair {
  both: DiffRow | null;
  left: DiffRow | null;
  right: DiffRow | null;
}

/** Lines that one comment is about; `line` is null for the whole file. */
export interface LineRange {
  side: rest.Side;
  line: number | null;
  lines: number;
  quote: string | null;
  from?: number;
  to?: number;
}

/** A folder of a tree of files. */
export interface Folder {
  folders: Map<string, Folder>;
  files: { file: DiffFile; name: string }[];
}

/** A row of a tree of files: a folder or a file. */
export interface TreeRow {
  folder?: true;
  file?: DiffFile;
  name: string;
  depth: number;
  path?: string;
}

/** A piece of code and the class of its colour. */
export type Token = [text: string, name: string];

/** What is shown of work: the diff of a task, or of several together. */
export type Diff = Omit<rest.Together, "tasks" | "base" | "tip"> & {
  base: string | null;
  tip: string | null;
  tasks?: rest.DiffPart[];
  merge?: string | null;
  landed?: boolean;
  dirty?: boolean;
  working?: boolean;
};

// The queue

/** What the steps of a merge are told from. */
export type MergeSteps = Pick<rest.MergeRow, "state" | "cause" | "candidate" | "untested">;

/** Where two names of an overlap table meet. */
export interface OverlapCell {
  level: rest.OverlapLevel;
  overlaps: rest.OverlapRow[];
}

/** Which open branches come near each other, as a table. */
export interface OverlapTable {
  rows: string[];
  columns: string[];
  cells: Map<string, OverlapCell>;
  heat: Map<string, number>;
  more: number;
}

// The timeline

/** What happened to one task. */
export interface TaskStory {
  key: string;
  task: string;
  at: number;
  steps: LogRow[];
  title: string;
  state: string;
  outcome: string;
  who: string | null;
  tries: number;
  back: number;
  took: number | null;
  reason: string;
  news?: undefined;
  day?: undefined;
  crowd?: undefined;
}

/** Something that stopped or moved all tasks. */
export interface Notice {
  key: string;
  news: true;
  at: number;
  text: string;
  task?: undefined;
  day?: undefined;
  crowd?: undefined;
}

/** Many tasks of which the same is to be said. */
export interface StoryCrowd {
  key: string;
  crowd: string;
  by: string;
  at: number;
  tasks: TaskStory[];
  news?: undefined;
  day?: undefined;
}

/** The line before what happened on a day. */
export interface StoryDay {
  key: string;
  day: true;
  name: string;
  at: number;
  counts: Record<string, number>;
  own: (TaskStory | Notice)[];
  many: Map<string, StoryCrowd>;
}

/** A part of a session's time. */
export type Span = Pick<rest.Span, "at" | "until"> & { state: string; evidence?: string | null };

// Widgets

/** Something that can be done by key or by name; see `useCommands`. */
export interface Command {
  label: string;
  run(event?: KeyboardEvent): unknown;
  keys?: string | string[];
  group?: string;
  hint?: string;
  also?: string;
  within?: string;
  when?(): unknown;
  always?: boolean;
  inDialog?: boolean;
  usual?: boolean;
  unlisted?: boolean | "always";
}

/** What can be done with something in the inbox: at once, or with words that somebody writes. */
export interface InboxAction {
  label: string;
  short?: string;
  kind?: string;
  choice?: boolean;
  field?: string;
  action?: string;
  run?(): unknown;
  write?(text: string): unknown;
}

/** A row or a column of a chart. */
export interface Bar {
  key: string;
  label: string;
  short?: string;
  value: number;
  text: string;
  href?: string | null;
  note?: string;
}

/** What can be asked of a list that draws only what is seen. */
export interface ListControl {
  to(key: string, edge?: "near" | "top"): void;
  focus(): void;
}

/** What a person is asked before something is done. */
export interface Asked {
  title: string;
  body?: string;
  action?: string;
  text?: string | null;
  value?: string;
  danger?: boolean;
  required?: boolean;
}

/** Something said in passing at the edge of the page. */
export interface PageNote {
  id: number;
  text: string;
  undo: (() => unknown) | null;
  hint: string;
  bad: boolean;
  place: string;
}

/** How the page is connected to the daemon. */
export type ConnectionState = "connecting" | "live" | "lost" | "unknown";

/** All that the page knows. */
export interface Known {
  tasks: Map<string, Task>;
  sessions: Map<string, Session>;
  live: Map<string, Live>;
  /** What each task has cost so far, in dollars, by id. */
  costs: Map<string, number>;
  columns: import("../src/covey/web/page/js/rules/columns.js").Columns;
  counts: Record<string, number>;
  inbox: InboxItem[];
  machine: rest.Machine | null;
  limits: rest.Limit[];
  today: rest.SpentToday | null;
  paused: boolean;
  /** Why tasks that are ready wait: in each lane, and in other words for some tasks. */
  waits: rest.WaitsNow;
  connection: { state: ConnectionState; since: number; end: Ending | null };
  /** Whether every task of the board is here, and how many there are. */
  loaded: { whole: boolean; total: number };
  /** What the board shows: a search text (`readFilter` in rules/columns.js), and one of its QUICK filters by name, or null. */
  filter: { text: string; quick: string | null };
  /** When the daemon was last heard, in seconds since 1970. */
  heard?: number;
  about?: { project: string; log: string; version: string };
}

/** What went wrong, in words. */
export interface Trouble {
  message: string;
  hint?: string;
  status?: number;
}

/** A map that has a value for whatever it is asked for. */
export interface FullMap<Key, Value> extends Map<Key, Value> {
  get(key: Key): Value;
}

// Views

/** How the board looks in this browser. */
export interface BoardLook {
  folded: Record<string, boolean>;
  view: string;
  list: ListLook;
  column?: string;
}

/** A part of a review: its name, its title, and how many things it shows. */
export type ReviewTab = [name: string, title: string, count: string | number];

/** A form that is open: of a task, or of a new one with some values. */
export interface TaskFormOpen {
  id?: string;
  values?: Partial<Task>;
}

/** One of some things to choose from. */
export interface Choice {
  value: string | null;
  label: string;
  state?: string;
  more?: string;
  free?: boolean;
}

/** One part of a card's last line: its class, what it says, and what that means. */
export type Fact = [kind: string, value: string | (number | null)[], means: string];

/** A comment that is being written. */
export interface CommentFields {
  text: string;
  path?: string | null;
  side?: rest.Side;
  task?: string;
  line?: number | null;
  lines?: number;
  quote?: string | null;
  commit?: string | null;
}

/** What a comment that is being written is about. */
export type Editing = LineRange & { path: string; task: string | null };

/** Something that is drawn in a diff: the head of a file, a line, a comment, a field for a new one. */
export interface DiffItem {
  key: string;
  type: string;
  size: number;
  file: DiffFile;
  row: DiffRow;
  pair: RowPair;
  comment: Comment;
  text: string;
  within?: boolean;
}

/** What can be asked of a diff that is shown. */
export interface DiffControl {
  show(path: string, key?: string): void;
}

/** What a terminal is, as its page sees it. */
export interface TerminalShown {
  shown: boolean;
  writes: boolean;
  cut: "lost" | "back" | null;
  ended: boolean;
  error: string | null;
  hint?: string;
  headless?: boolean;
  run?: string;
  columns?: number;
}

/** What the daemon says of a terminal. */
export interface TerminalNews {
  columns?: number;
  rows: number;
  below?: number;
  run?: string;
  write?: boolean;
  ended?: boolean;
  error?: string;
  hint?: string;
  /** The session runs, and has no terminal. */
  headless?: boolean;
}

/** A row of a transcript; a tool has its outcome once that is known. */
export type TranscriptRow = rest.Entry & { key: string | number; outcome?: "failed" | "done" };

/** What is known of a session at this moment. */
export interface KnownSession {
  name: string;
  session: Session | undefined;
  full: rest.SessionFull | undefined;
  live: Live | undefined;
  run: string | null;
  task: string | null;
  title: string;
  state: string | undefined;
  since: number | undefined;
  person?: boolean;
}

/** New sessions that somebody asked for. */
export interface SessionWish {
  count?: number;
  agent?: string | null;
  role?: string | null;
}

/** An entry of the palette. */
export interface PaletteEntry {
  key: string;
  id?: string;
  title: string;
  side?: string;
  state?: string;
  keys?: string | string[];
  run(): unknown;
}

/** Which events of the log are wanted. */
export interface LogFilter {
  session?: string;
  task?: string;
  until?: number | null;
  kinds?: string;
  without?: string;
}

/** What has been read of the log, the newest first. */
export interface LogRead {
  rows: LogRow[];
  whole: boolean;
  problem: Trouble | null;
  begun: boolean;
}

/** A line of the log, or of the day that follows. */
export type LogLine = (LogRow & { day?: undefined }) | { day: string; seq: string };

/** What the timeline shows. */
export interface TimelineFilters {
  session: string;
  task: string;
  outcome: string;
  groups: string[];
  until: number | null;
  events: boolean;
}

/** A message; of one that the owner sent, only what the log says is known. */
export type MailMessage = Pick<
  rest.MessageFull,
  "id" | "seq" | "sender" | "sent" | "to" | "subject" | "task" | "wants_ack" | "wake"
> & {
  text: string | null;
  read?: number | null;
  acked?: number | null;
};

/** All messages that were exchanged with somebody. */
export interface MailThread {
  name: string;
  messages: MailMessage[];
  unread: number;
  asks: number;
}

/** A card that is pressed, and dragged once it has moved. */
export interface Held {
  id: string;
  ids: string[];
  pointer: number;
  touch: boolean;
  x0: number;
  y0: number;
  x: number;
  y: number;
  active: boolean;
  timer?: number;
  frame: number;
  ghost: HTMLElement;
  line: HTMLElement;
  target: DropTarget | null;
}

/** Where a card is drawn, in pixels from the top left of the columns. */
export interface CardBox {
  left: number;
  right: number;
  middle: number;
  top: number;
  bottom: number;
}

/** Rows of a patch, and what is made of them once. */
export interface ParsedPatch {
  rows: DiffRow[];
  index: Map<DiffRow, number>;
  pairs: RowPair[] | null;
  marks: Map<DiffRow, [number, number]>;
}

/** Lines that somebody has picked in a diff, from one row to another. */
export type PickedLines = LineRange & { path: string; one: number; other: number; from: number; to: number };

/** The dialog about sessions that is open. */
export interface SessionDialogShown {
  add?: rest.Offer;
  values?: SessionWish;
  remove?: string;
}

/** Something that can be done to a session. */
export interface SessionDeed {
  verb: "pause" | "resume" | "start" | "restart" | "stop" | "remove";
  label: string;
  keys: string;
  button?: string;
  sign?: string;
  danger?: boolean;
  ask?: string;
  done?: string;
  can(one: KnownSession): boolean;
  open?(name: string): void;
}

/** A task as its form has it; `partial` while only its row is known. */
export type FormTask = Partial<Task> & Record<string, unknown> & { partial?: boolean };
