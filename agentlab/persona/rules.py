"""The numbers and names that a study sets for all its personas."""

import msgspec


class Action(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something a persona may do with what it is shown.

    `valence` in [-1, 1]: what doing it says about the stimulus (a like 1, a report -1, a reply 0: either way).
    `effort` in [0, 1]: what it costs; effort 0 and valence 0 is doing nothing.
    """

    name: str
    valence: float
    effort: float

    @property
    def idle(self) -> bool:
        return self.effort == 0 and self.valence == 0


KNOWN_ACTIONS = {
    action.name: action
    for action in (
        Action("ignore", 0.0, 0.0),
        Action("like", 1.0, 0.2),
        Action("dislike", -1.0, 0.2),
        Action("share", 1.0, 0.5),
        Action("reply", 0.0, 0.6),
        Action("report", -1.0, 0.6),
    )
}


class Ask(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A character probe: about a field of the profile, or about the first opinion on a topic."""

    field: str = ""
    topic: str = ""

    @property
    def id(self) -> str:
        return f"opinion:{self.topic}" if self.topic else self.field


class Rules(msgspec.Struct, frozen=True):
    """`cap` memories live at most, `k` of them recalled, recency decaying with `tau` (study time).

    `batch` memories make a summary; `reflect_at` is the gathered importance that calls for one (Park et al. use 150 on
    a scale of 10; importance here goes to 1). `model_above` is the arousal from which the model is asked. `rate` and
    `tolerance` steer belief change, `temperature` the choice of an action (see `reaction`). Probes are put every
    `probe_every` turns (0: never); beyond `drift_above` an answer counts as drift.
    """

    actions: tuple[Action, ...] = (KNOWN_ACTIONS["ignore"], KNOWN_ACTIONS["like"], KNOWN_ACTIONS["share"])
    topics: tuple[str, ...] = ()
    cap: int = 64
    k: int = 8
    tau: float = 20.0
    batch: int = 8
    reflect_at: float = 15.0
    rate: float = 0.3
    tolerance: float = 1.0
    temperature: float = 0.25
    model_above: float = 0.6
    probe_every: int = 0
    probe_ask: tuple[Ask, ...] = ()
    drift_above: float = 0.3

    def action(self, name: str) -> Action | None:
        return next((action for action in self.actions if action.name == name), None)
