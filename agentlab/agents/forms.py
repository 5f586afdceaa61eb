"""What an owner may type: sizes are checked here, and NUL is refused by every text field."""

from typing import Any

from django import forms

from agentlab.agents.models import Agent, Whisper
from agentlab.agents.services import Draft

SKILLS_AT_MOST = 12
SKILL_TEXT_LIMIT = 8000
BLANK_SKILLS = 2  # offered beyond those that are there


class AgentForm(forms.ModelForm):  # type: ignore[type-arg]  # not subscriptable at run time
    class Meta:
        model = Agent
        fields = ["name"]


class WhisperForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = Whisper
        fields = ["text"]
        labels = {"text": "Whisper"}
        widgets = {"text": forms.Textarea(attrs={"rows": 2})}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        del self.fields["text"].widget.attrs["maxlength"]  # by which a browser cuts what is pasted without a word


class VerbatimField(forms.CharField):
    """Text whose every character counts: not stripped, and a browser's CRLF is one newline again."""

    def __init__(self, rows: int, **kwargs: Any) -> None:
        super().__init__(strip=False, widget=forms.Textarea(attrs={"rows": rows}), **kwargs)

    def widget_attrs(self, widget: forms.Widget) -> dict[str, Any]:
        """No `maxlength`: a browser would cut what is pasted without a word."""
        return {}

    def to_python(self, value: Any) -> str:
        return (super().to_python(value) or "").replace("\r\n", "\n")


class VersionForm(forms.Form):
    base_prompt = VerbatimField(16, max_length=20_000)
    strategy = VerbatimField(8, max_length=20_000)
    model = forms.RegexField(
        r"\A(house|openai:\S+)\Z",  # never answers:FILE, which would have the agent's process open any path
        max_length=120,
        help_text="house, or openai:NAME for a model of the configured endpoint. The house model needs none, and heeds"
        " only plain words of style: tight, loose, aggressive, passive, “one hand in five”, “bluff often”.",
        error_messages={"invalid": "Write house, or openai: and the name of a model, such as openai:gpt-5."},
    )


class SkillForm(forms.Form):
    name = forms.CharField(max_length=80, required=False)
    text = VerbatimField(5, max_length=SKILL_TEXT_LIMIT, required=False)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if bool(cleaned.get("name")) != bool(cleaned.get("text")) and not self.errors:
            raise forms.ValidationError("A skill needs a name and a text; leave both empty for none.")
        return cleaned


SkillFormSet = forms.formset_factory(
    SkillForm, extra=BLANK_SKILLS, max_num=SKILLS_AT_MOST, absolute_max=SKILLS_AT_MOST, validate_max=True
)


def bound_or_initial(draft: Draft, data: Any = None) -> tuple[VersionForm, Any]:
    """The two halves of the page: the texts and the list of skills; of `data`, or as `draft` has them."""
    if data is not None:  # without the draft: a row that says what it said would count as not filled in
        return VersionForm(data), SkillFormSet(data, prefix="skill")
    texts = {"base_prompt": draft.base_prompt, "strategy": draft.strategy, "model": draft.model}
    return VersionForm(initial=texts), SkillFormSet(initial=draft.skills, prefix="skill")


def draft_from(form: VersionForm, skills: Any) -> Draft:
    """The draft that two valid halves make; a skill whose fields were emptied is gone."""
    kept = [{"name": row["name"], "text": row["text"]} for row in skills.cleaned_data if row.get("text")]
    return Draft(skills=kept, **form.cleaned_data)
