"""The colour of an agent's stripe: its own on every page, and never that of somebody at the same table."""

import zlib
from collections.abc import Iterable

STRIPES = 9  # colours in the stylesheet; a table has nine seats at most
SALT = "977"  # one with which the nine agents of the house have nine colours


def stripes(agent_ids: Iterable[str]) -> dict[str, int]:
    """A colour for each of these agents, from 0: the one of its id, but where two would share one, the second by
    alphabet takes the next that is free. Beyond nine agents colours repeat."""
    own = {agent_id: _own(agent_id) for agent_id in sorted(set(agent_ids))}
    taken: dict[int, str] = {}
    for agent_id, colour in own.items():
        taken.setdefault(colour, agent_id)
    found = {agent_id: colour for colour, agent_id in taken.items()}
    for agent_id, colour in own.items():
        if agent_id not in found:
            after = ((colour + step) % STRIPES for step in range(STRIPES))
            found[agent_id] = next((free for free in after if free not in taken), colour)
            taken[found[agent_id]] = agent_id
    return found


def _own(agent_id: str) -> int:
    return zlib.crc32(f"{SALT} {agent_id}".encode("utf-8", "surrogatepass")) % STRIPES
