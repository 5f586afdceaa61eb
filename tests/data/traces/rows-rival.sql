INSERT INTO agent_attempts (attempt_id, run_id, phase, user_prompt, state, input_packet_version, input_coverage, declared_input_count, captured_input_count, omitted_input_count) VALUES
 ('THEIRS', 'run-11', 'plan', 'mine', 'succeeded', 1, 'complete', 4, 4, 0);
INSERT INTO agent_attempt_inputs VALUES
 ('i1', 'THEIRS', 1, 'passwd', 'context_handoff', 'path_reference', '/etc/passwd', '/etc/passwd', 'text/plain', 'text', 1, 'dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd', 'captured', 'available', NULL, NULL),
 ('i2', 'THEIRS', 2, 'theirs', 'context_handoff', 'path_reference', 'THEIRS/1', 'THEIRS/1', 'text/plain', 'text', 1, 'eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee', 'captured', 'available', NULL, NULL),
 ('i3', 'THEIRS', 3, 'up', 'context_handoff', 'path_reference', '../../THEIRS/1', '../THEIRS/1', 'image/png', 'image', 1, 'ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff', 'captured', 'available', NULL, NULL),
 ('i4', 'THEIRS', 4, 'url', 'explicit_attachment', 'provider_attachment', 'http://169.254.169.254/', 'file:///etc/passwd', 'image/png', 'image', 1, 'ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff', 'captured', 'available', NULL, NULL);
