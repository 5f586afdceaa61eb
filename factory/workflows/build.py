"""Plan, build, review: three phases in one model session."""

from factory.phases import Envelope, Phase, Workflow


class Plan(Envelope):
    summary: str
    steps: list[str]


class Built(Envelope):
    summary: str
    files: list[str]


class Review(Envelope):
    summary: str
    approved: bool
    remarks: list[str] = []

    def objection(self) -> str | None:
        return None if self.approved else f"the review did not approve: {self.summary}"


BUILD = Workflow(
    name="build",
    system="You are a careful engineer. You plan, you build in the working directory, you review, and answer in JSON.",
    phases=(
        Phase(
            name="plan",
            instruction="Plan how to do what the request under “prompt” asks for. Change no file yet.",
            envelope=Plan,
            example='{"summary": "…", "steps": ["…"]}',
        ),
        Phase(
            name="build",
            instruction="Carry out the plan for the request that began this session.",
            envelope=Built,
            example='{"summary": "…", "files": ["…"]}',
            gated=True,
        ),
        Phase(
            name="review",
            instruction="Review what was built against the request that began this session. Change nothing.",
            envelope=Review,
            example='{"summary": "…", "approved": true, "remarks": ["…"]}',
        ),
    ),
)
