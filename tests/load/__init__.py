"""What a full database costs the pages: a small world and a big one are asked the same (`python -m tests.load`)."""
