INSERT INTO agent_attempts (attempt_id, run_id, phase, session_id, user_prompt, state, started_at, task_prompt, send_kind, turn_index) VALUES
 ('t1', 'run-8', 'plan', 's-2', 'Plan it', 'succeeded', '2026-08-19T10:00:00Z', 'Plan', 'initial', 1),
 ('t2', 'run-8', 'build', 's-2', 'Build it', 'succeeded', '2026-08-19T10:01:00Z', NULL, NULL, NULL);
