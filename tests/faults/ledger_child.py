"""A process with a LedgerWriter that does what it is told on standard input, one JSON answer a line.

charge FIRST COUNT      outcome FIRST COUNT      flush SECONDS      close SECONDS
"""

import json
import sys
from datetime import UTC, datetime

import django

from agentlab.agents.ledger import Charge, LedgerWriter


def main(spool: str) -> None:
    django.setup()
    writer = LedgerWriter(spool)
    for line in sys.stdin:
        verb, *numbers = line.split()
        answer: object = None
        if verb in {"charge", "outcome"}:
            first, count = map(int, numbers)
            for index in range(first, first + count):
                if verb == "charge":
                    writer.charge(Charge("rocky", "T-1", 1, index, datetime(2026, 7, 1, tzinfo=UTC), action="call"))
                else:
                    writer.outcome(
                        agent_id="rocky", table_id="T-1", hand_number=1, action_index=index, outcome="recorded"
                    )
        else:
            answer = getattr(writer, verb)(float(numbers[0]))
        print(json.dumps({"answer": answer, **vars(writer.stats)}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
