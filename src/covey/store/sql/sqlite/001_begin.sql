-- Folded from the log: log, tasks, needs, sessions, leases, lease_resources, messages, readings, merges, alerts,
-- counts, ids. Scratch: pulses, requests, tokens, blobs, origins, origin_events.

CREATE TABLE log (
    id      TEXT PRIMARY KEY,
    seq     INTEGER NOT NULL,
    hash    BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
    seq     INTEGER PRIMARY KEY,
    time    REAL NOT NULL,
    actor   TEXT NOT NULL,
    kind    TEXT NOT NULL,
    subject TEXT NOT NULL,
    data    TEXT NOT NULL,
    key     TEXT,
    prev    BLOB NOT NULL
) STRICT;
CREATE INDEX events_subject ON events (subject, seq);
CREATE INDEX events_actor ON events (actor, seq);

CREATE TABLE tasks (
    id            TEXT PRIMARY KEY,
    ordinal       INTEGER NOT NULL,
    title         TEXT NOT NULL,
    body          TEXT NOT NULL,
    kind          TEXT NOT NULL,
    status        TEXT NOT NULL,
    assignee      TEXT,
    role          TEXT,
    priority      INTEGER NOT NULL,
    needs         TEXT NOT NULL,
    parent        TEXT,
    scope         TEXT NOT NULL,
    do_not_touch  TEXT NOT NULL,
    overlap       INTEGER NOT NULL,
    done_when     TEXT NOT NULL,
    budget        REAL,
    key           TEXT,
    session       TEXT,
    fence         INTEGER NOT NULL,
    front         TEXT,
    tries         TEXT NOT NULL,
    notes         TEXT NOT NULL,
    result        TEXT NOT NULL,
    reason        TEXT,
    "commit"      TEXT,
    created       REAL NOT NULL,
    updated       REAL NOT NULL,
    claimed       REAL,
    ended         REAL,
    unmet         INTEGER NOT NULL,
    open_children INTEGER NOT NULL,
    lane          TEXT NOT NULL,
    line          INTEGER NOT NULL
) STRICT;
CREATE INDEX tasks_ready ON tasks (lane, line, priority DESC, ordinal)
    WHERE status = 'todo' AND unmet = 0 AND open_children = 0;
CREATE INDEX tasks_board ON tasks (priority DESC, ordinal);
CREATE INDEX tasks_status ON tasks (status, priority DESC, ordinal);
CREATE INDEX tasks_session ON tasks (session, status) WHERE session IS NOT NULL;
CREATE INDEX tasks_scoped ON tasks (ordinal) WHERE status = 'doing' AND scope <> '[]';
CREATE INDEX tasks_front ON tasks (front) WHERE front IS NOT NULL;
CREATE INDEX tasks_parent ON tasks (parent) WHERE parent IS NOT NULL;
CREATE UNIQUE INDEX tasks_key ON tasks (key) WHERE key IS NOT NULL;

CREATE TABLE needs (
    task    TEXT NOT NULL,
    need    TEXT NOT NULL,
    policy  TEXT NOT NULL,
    PRIMARY KEY (task, need)
) STRICT, WITHOUT ROWID;
CREATE INDEX needs_need ON needs (need);

CREATE TABLE sessions (
    name     TEXT PRIMARY KEY,
    ordinal  INTEGER NOT NULL,
    kind     TEXT NOT NULL,
    role     TEXT,
    wip      INTEGER,
    state    TEXT NOT NULL,
    evidence TEXT,
    created  REAL NOT NULL,
    updated  REAL NOT NULL,
    removed  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE leases (
    id        TEXT PRIMARY KEY,
    holder    TEXT NOT NULL,
    resources TEXT NOT NULL,
    shared    INTEGER NOT NULL,
    ttl       REAL NOT NULL,
    task      TEXT,
    reason    TEXT,
    fence     INTEGER NOT NULL,
    state     TEXT NOT NULL,
    taken     REAL NOT NULL,
    ended     REAL
) STRICT;
CREATE INDEX leases_live ON leases (fence) WHERE state = 'live';
CREATE INDEX leases_holder ON leases (holder, fence) WHERE state = 'live';

CREATE TABLE lease_resources (
    lease    TEXT NOT NULL,
    resource TEXT NOT NULL,
    found    TEXT NOT NULL,
    PRIMARY KEY (lease, resource)
) STRICT, WITHOUT ROWID;
CREATE INDEX lease_resources_found ON lease_resources (found);

CREATE TABLE messages (
    id        TEXT PRIMARY KEY,
    ordinal   INTEGER NOT NULL,
    sender    TEXT NOT NULL,
    "to"      TEXT NOT NULL,
    subject   TEXT,
    text      TEXT NOT NULL,
    task      TEXT,
    wants_ack INTEGER NOT NULL,
    sent      REAL NOT NULL
) STRICT;
CREATE INDEX messages_to ON messages ("to", ordinal);
CREATE INDEX messages_ordinal ON messages (ordinal);

CREATE TABLE readings (
    message TEXT NOT NULL,
    reader  TEXT NOT NULL,
    read    REAL NOT NULL,
    acked   REAL,
    PRIMARY KEY (message, reader)
) STRICT, WITHOUT ROWID;

CREATE TABLE merges (
    id       TEXT PRIMARY KEY,
    ordinal  INTEGER NOT NULL,
    task     TEXT NOT NULL,
    session  TEXT NOT NULL,
    branch   TEXT NOT NULL,
    "commit" TEXT,
    state    TEXT NOT NULL,
    landed   TEXT,
    reason   TEXT,
    queued   REAL NOT NULL,
    ended    REAL
) STRICT;
CREATE INDEX merges_task ON merges (task, ordinal);
CREATE INDEX merges_ordinal ON merges (ordinal);
CREATE INDEX merges_open ON merges (ordinal) WHERE state IN ('review', 'queued', 'testing');

CREATE TABLE alerts (
    id      TEXT PRIMARY KEY,
    ordinal INTEGER NOT NULL,
    type    TEXT NOT NULL,
    message TEXT NOT NULL,
    session TEXT,
    task    TEXT,
    raised  REAL NOT NULL
) STRICT;
CREATE INDEX alerts_ordinal ON alerts (ordinal);

CREATE TABLE counts (
    status TEXT PRIMARY KEY,
    tasks  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE ids (
    prefix TEXT PRIMARY KEY,
    last   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE pulses (
    subject TEXT PRIMARY KEY,
    seen    REAL NOT NULL,
    awake   REAL NOT NULL,
    boot    TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE requests (
    principal TEXT NOT NULL,
    key       TEXT NOT NULL,
    request   BLOB NOT NULL,
    status    INTEGER NOT NULL,
    answer    BLOB NOT NULL,
    at        REAL NOT NULL
) STRICT;
CREATE UNIQUE INDEX requests_key ON requests (principal, key);
CREATE INDEX requests_at ON requests (at);

CREATE TABLE tokens (
    hash    BLOB PRIMARY KEY,
    session TEXT NOT NULL,
    made    REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX tokens_session ON tokens (session);

CREATE TABLE blobs (
    sha256 TEXT PRIMARY KEY,
    size   INTEGER NOT NULL,
    text   TEXT NOT NULL,
    used   REAL NOT NULL
) STRICT;
CREATE INDEX blobs_used ON blobs (used);

CREATE TABLE origins (
    log  TEXT PRIMARY KEY,
    seq  INTEGER NOT NULL,
    hash BLOB NOT NULL,
    at   REAL NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE origin_events (
    log      TEXT NOT NULL,
    seq      INTEGER NOT NULL,
    time     REAL NOT NULL,
    actor    TEXT NOT NULL,
    kind     TEXT NOT NULL,
    subject  TEXT NOT NULL,
    data     TEXT NOT NULL,
    key      TEXT,
    prev     BLOB NOT NULL,
    hash     BLOB NOT NULL,
    withheld INTEGER NOT NULL,
    PRIMARY KEY (log, seq)
) STRICT, WITHOUT ROWID;
