CREATE TABLE agent_attempt_inputs (
  input_id TEXT PRIMARY KEY,
  attempt_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  label TEXT NOT NULL,
  source_kind TEXT NOT NULL,
  delivery_mode TEXT NOT NULL,
  source_path TEXT,
  snapshot_path TEXT,
  media_type TEXT,
  preview_kind TEXT NOT NULL,
  size_bytes INTEGER,
  sha256 TEXT,
  capture_status TEXT NOT NULL,
  artifact_status TEXT NOT NULL,
  detail TEXT,
  captured_at TEXT,
  UNIQUE (attempt_id, seq)
);
