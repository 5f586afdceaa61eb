INSERT INTO agent_attempts (attempt_id, run_id, phase, session_id, user_prompt, state, started_at) VALUES
 ('t1', 'run-9', 'plan', NULL, 'Do all of it', 'succeeded', '2026-08-01T10:00:00Z');
