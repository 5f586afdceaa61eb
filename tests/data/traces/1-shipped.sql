CREATE TABLE agent_attempts (
  attempt_id TEXT PRIMARY KEY,
  run_id TEXT NOT NULL,
  phase TEXT NOT NULL,
  session_id TEXT,
  provider TEXT,
  model TEXT,
  system_prompt TEXT,
  user_prompt TEXT,
  launch_command TEXT,
  reply TEXT,
  state TEXT,
  error TEXT,
  input_tokens INTEGER,
  output_tokens INTEGER,
  cost REAL,
  started_at TEXT,
  ended_at TEXT
);
