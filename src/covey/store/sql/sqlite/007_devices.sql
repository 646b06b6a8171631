-- Folded from the log: browsers that were invited, and joined. Codes, tokens and keys are here by their hashes alone.

CREATE TABLE devices (
    id      TEXT PRIMARY KEY,
    ordinal INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    label   TEXT NOT NULL,
    code    TEXT NOT NULL,
    invited REAL NOT NULL,
    until   REAL NOT NULL,
    token   TEXT,
    "key"   TEXT,
    joined  REAL,
    revoked REAL
) STRICT;
CREATE INDEX devices_code ON devices (code);
CREATE INDEX devices_token ON devices (token) WHERE token IS NOT NULL;
CREATE INDEX devices_ordinal ON devices (ordinal);
