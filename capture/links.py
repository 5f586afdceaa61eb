"""Where the parts of a turn are had. The operator's pages and the owner's show the same turns under other addresses."""

import re
from dataclasses import dataclass
from urllib.parse import quote, urlencode

OPERATORS_PAGE = "/agent-capture"
VERSION_PAGE = "/agents/{agent}/versions/{version}"


def turn_anchor(action_index: int, agent_id: str) -> str:
    """`t7-rocky`. Two ids may look alike once they are an anchor: a page then numbers the later ones."""
    slug = re.sub(r"[^A-Za-z0-9_-]+", "-", agent_id)[:64]
    return f"t{action_index}-{slug}"


@dataclass(frozen=True)
class TurnLinks:
    """Addresses below `base` (`/agent-capture`): a page with `part` and `raw` beneath it, told the turn by query.

    `version_page` has a place for `{agent}` and `{version}`; without it a version is not a link.
    """

    base: str
    version_page: str = ""
    find: str = ""

    def hand(self, table_id: str, hand_number: int) -> str:
        return f"{self.base}?{urlencode({'table': table_id, 'hand': hand_number})}"

    def turn(self, table_id: str, hand_number: int, agent_id: str, action_index: int) -> str:
        """The turn in its hand."""
        return f"{self.hand(table_id, hand_number)}#{turn_anchor(action_index, agent_id)}"

    def part(self, table_id: str, hand_number: int, agent_id: str, action_index: int, part: str) -> str:
        query = self._query(table_id, hand_number, agent_id, action_index, part)
        return f"{self.base}/part?{urlencode(query | ({'q': self.find} if self.find else {}))}"

    def raw(self, table_id: str, hand_number: int, agent_id: str, action_index: int, part: str) -> str:
        return f"{self.base}/raw?{urlencode(self._query(table_id, hand_number, agent_id, action_index, part))}"

    def version(self, agent_id: str, version_id: str) -> str:
        names = {"agent": agent_id, "version": version_id}
        quoted = {name: quote(text, safe="", errors="replace") for name, text in names.items()}
        return self.version_page.format(**quoted)

    @staticmethod
    def _query(table_id: str, hand_number: int, agent_id: str, action_index: int, part: str) -> dict[str, object]:
        return {"table": table_id, "hand": hand_number, "agent": agent_id, "turn": action_index, "part": part}
