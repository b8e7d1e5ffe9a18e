"""`judge`: how good the configured judges are, measured on skills whose label is known."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from vskill_client.group import PlatformGroup
from vskill_client.output import print_json, print_table
from vskill_core.errors import InvalidInput, InvalidSettings
from vskill_platform.cli.process import run_async
from vskill_platform.cli.verdicts.labelled_skills import Label, labelled_skills
from vskill_platform.settings import Settings, process_settings

if TYPE_CHECKING:
    from vskill_platform.cli.verdicts.judge_figures import EvaluationFigures, JudgeFigures


@click.group(cls=PlatformGroup)
def judge() -> None:
    """Measure the judges that VSKILL_JUDGE_URL and VSKILL_SECOND_JUDGE_URL name."""


@judge.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How to print the figures.",
)
@click.option(
    "--keep",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Keep each answer in this file as it comes; the next run with it asks only what is missing.",
)
@click.option(
    "--at-once",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    help="Skills that are asked about at the same time.",
)
@click.option(
    "--malicious", default="malicious", show_default=True, help="The label whose approval is a miss."
)
@click.option(
    "--honest", default="honest", show_default=True, help="The label whose refusal is a false alarm."
)
@click.option(
    "--prices",
    type=(click.FloatRange(min=0), click.FloatRange(min=0)),
    metavar="READ WRITTEN",
    help="Prices of a million tokens that are read and written, to print the cost.",
)
def evaluate(
    *,
    folder: Path,
    form: str,
    keep: Path | None,
    at_once: int,
    malicious: str,
    honest: str,
    prices: tuple[float, float] | None,
) -> None:
    """Ask the configured judges about a FOLDER of labelled skills, and print how well they do.

    A skill is a folder at PART/LABEL/NAME or PART/LABEL/OWNER/NAME below FOLDER. Each judge is asked as a worker asks
    it, after our own scan. Recall counts malicious skills that it does not approve, false alarms honest ones.

    Exit code 0: every skill was judged. 1: some were not; the end of the output says which and why, and a run with the
    same --keep file asks for these alone. A judge whose service fails three times in a row is not asked any more.
    """
    # Loaded before the loop runs: an import reads files.
    from vskill_platform.cli.verdicts.judge_evaluation import evaluate_judges
    from vskill_platform.cli.verdicts.judge_figures import EvaluationTerms, count_evaluation

    asked = evaluate_judges(_judge_settings(), folder, _find_skills(folder), keep=keep, at_once=at_once)
    figures = count_evaluation(run_async(asked), EvaluationTerms(malicious, honest, prices))
    if form == "json":
        print_json(figures)
    else:
        _print_figures(figures)
    raise SystemExit(1 if figures.not_judged else 0)


def _judge_settings() -> Settings:
    from vskill_platform.observing.logs import configure_logging

    # Nothing is kept on this machine but the answers; what goes wrong with a judge is part of the figures.
    settings = msgspec.structs.replace(
        process_settings(), store="memory:", scan_processes=1, log_level="error"
    )
    configure_logging(settings)
    if not settings.judge_url:
        fix = "set VSKILL_JUDGE_URL and VSKILL_JUDGE_MODEL"
        raise InvalidSettings("No judge is configured.", setting="VSKILL_JUDGE_URL", fix=fix)
    return settings


def _find_skills(folder: Path) -> dict[Path, Label]:
    skills = labelled_skills(folder)
    if not skills:
        fix = "lay the skills out as PART/LABEL/NAME, such as mine/honest/tidy/SKILL.md"
        raise InvalidInput(f"There is no labelled skill below {folder}.", field="FOLDER", fix=fix)
    return skills


def _print_figures(figures: "EvaluationFigures") -> None:
    from vskill_platform.cli.action_commands import show_answer, table

    labels = table(
        "Judge: {judge}, {model}",
        "labels",
        *(
            "part",
            "label",
            "skills",
            "approved",
            "unsure",
            "rejected",
            "refused",
            ("not judged", "not_judged"),
        ),
        *(("published without", "published_unjudged"), ("published with", "published")),
        *(("tokens read", "prompt_tokens"), ("written", "answer_tokens")),
        *(("median s", lambda one: f"{one.median_s:.1f}"), ("95 % s", lambda one: f"{one.p95_s:.1f}")),
    )
    for judge_figures in figures.judges:
        show_answer(judge_figures, labels)
        print_table("", ("", ""), _summary(judge_figures))
    missing = [
        (path, place, why) for path, reasons in figures.not_judged.items() for place, why in reasons.items()
    ]
    if missing:
        print_table(f"Not judged: {len(missing)}", ("skill", "judge", "why"), missing)


def _summary(figures: "JudgeFigures") -> list[tuple[str, str]]:
    cost = [] if figures.cost is None else [("cost", f"{figures.cost:,.4f}")]
    return [
        ("recall", f"{figures.recall} malicious skills not approved"),
        ("false alarms", f"{figures.false_alarms} honest skills not approved"),
        ("tokens", f"{figures.prompt_tokens:,} read, {figures.answer_tokens:,} written"),
        *cost,
        ("time", f"{figures.seconds:,.1f} s for all questions"),
    ]
