INSERT INTO agent_attempts (attempt_id, run_id, phase, session_id, user_prompt, state, started_at, send_kind, turn_index, input_packet_version, input_coverage, declared_input_count, captured_input_count) VALUES
 ('t1', 'run-10', 'plan', 's-3', CAST(x'636166e9' AS TEXT), 'succeeded', 'yesterday', 'again', 'many', 1, 'total', -5, 'lots'),
 ('t2', 'run-10', 'plan', 's-3', 'well formed', 'succeeded', '2026-08-18T10:00:00Z', 'initial', 1, 1, 'complete', 0, 0);
INSERT INTO agent_attempt_inputs VALUES
 ('i1', 't1', 1, '<b>bold</b>', 'telepathy', 'pigeon', NULL, NULL, 'text/html', 'html', -1, 'not a hash', 'perhaps', 'available', x'ff00', 'never'),
 ('i2', 't1', 2, 'fine', 'context_handoff', 'path_reference', '/x/fine', NULL, NULL, 'none', 3, 'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc', 'captured', 'available', NULL, NULL);
