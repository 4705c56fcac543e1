-- Which worker processes there are, of those that forward requests to each other: each says so again and again, by the database's
-- clock. `servers` is their common name. Not logged: it is worth nothing after a crash, and nothing rests on it.
CREATE UNLOGGED TABLE worker (
    servers text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    until timestamptz NOT NULL,
    CONSTRAINT worker_pkey PRIMARY KEY (servers, name)
);
