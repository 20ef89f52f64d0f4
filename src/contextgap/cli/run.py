"""The command that explores a known problem as a user's learner would."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contextgap.beliefs.widths import PosteriorWidth
from contextgap.cli.options import (
    CORES,
    Jobs,
    Json,
    KernelName,
    Methods,
    ProblemName,
    Results,
    Seed,
    with_groups,
)
from contextgap.cli.policies import CardRows, has_card, print_card
from contextgap.cli.problems import ProblemOptions
from contextgap.cli.terminal import (
    command_line,
    complaints,
    out,
    phases,
    print_json,
    print_table,
)
from contextgap.cli.workers import workers
from contextgap.kernels import Gaussian, read_kernel
from contextgap.learner import Learner, StoppingRule
from contextgap.methods.method import Method, read_method
from contextgap.policy import Policy
from contextgap.studies.experiments.compare import Pair, read_methods
from contextgap.studies.experiments.defaults import (
    evaluate_defaults,
    explored,
    same_rows,
    summarise_defaults,
)
from contextgap.studies.experiments.tasks import one_thread
from contextgap.studies.problems import Problem

if TYPE_CHECKING:
    from pandas import DataFrame

_MOST = 1000  # rows to explore, and rows to deploy on, unless the user says otherwise
_CHECKPOINTS = 20
_METHODS = ["auto", "uniform", "kernel-ucb"]


@with_groups
def run_command(
    problem: ProblemName = "bench",
    methods: Methods = _METHODS,
    repetitions: Annotated[
        int, typer.Option(help="How many samples of the problem, with seeds from --seed on.", min=1)
    ] = 3,
    *,
    data: ProblemOptions,
    bandwidth: Annotated[
        float | None, typer.Option(help="Bandwidth of a Gaussian kernel; learnt by default.")
    ] = None,
    kernel: KernelName = None,
    ridge: Annotated[
        float | None,
        typer.Option(
            help="Variance of the noise; learnt by default. Alone, contexts set the bandwidth."
        ),
    ] = None,
    scale: Annotated[
        float | None, typer.Option(help="Half width of intervals in standard deviations.")
    ] = None,
    until: Annotated[
        float | None,
        typer.Option(
            help="Stop exploring for the saved policy once regret bounds are below this. "
            "Where hyperparameters are learnt anew, the certified share may fall again.",
            min=0,
        ),
    ] = None,
    share: Annotated[
        float, typer.Option(help="With --until: the share of held-out contexts.")
    ] = 0.95,
    card_rows: CardRows = None,
    seed: Seed = 0,
    jobs: Jobs = CORES,
    folder: Results = Path("out/run"),
    json: Json = False,
) -> None:
    """Explore a problem with default settings, report the regret and save the policy.

    Hyperparameters are learnt from the rewards while exploring.

    Half of the rows are for exploring, the rest for deploying; by default at most 1000 each.

    The policy is the first method's, of the first repetition.
    """
    from contextgap.studies.report.studies import ranked, run_report, write

    with complaints(), phases() as watch, workers(jobs, None) as executor:
        seeds = list(range(seed, seed + repetitions))
        samples = [data.read(problem, number) for number in seeds]
        reference, rounds = _parts(samples, data, held_out=until is not None)
        # "auto" gets the name of the method that it stands for.
        named = [read_method(name).name if name == "auto" else name for name in methods]
        contestants = read_methods(named)
        settings = _settings(rounds[0][0].inputs, kernel, bandwidth, ridge, scale)
        steps = len(rounds[0][0])
        first = next(iter(contestants.values()))
        rule = None if until is None else StoppingRule(until, share, reference)
        learn = partial(_policy, rounds[0][0], first, seed, settings, rule)
        waiting = None if executor is None else executor.submit(learn)  # while others explore
        results = evaluate_defaults(
            rounds,
            methods=contestants,
            checkpoints=_shares(steps, range(1, _CHECKPOINTS + 1), _CHECKPOINTS),
            full_checkpoints=_shares(steps, (1, 2, 4, 8), 8),
            seeds=seeds,
            settings=settings,
            executor=executor,
            progress=watch("exploring"),
        )
        watch("learning the policy")
        policy = learn() if waiting is None else waiting.result()
        card = policy.score(rows=card_rows) if has_card(policy) else None
        policy = Policy(replace(policy.state, card=card))
        watch("drawing")
        folder.mkdir(parents=True, exist_ok=True)
        policy.save(folder / "policy.cgap")
        results.write(folder)
        report = run_report(rounds, results, policy, card, settings=settings, seeds=seeds)
        page = write(report, folder, command_line(), watch.seconds)
    saving = None if until is None else _saving(policy, rounds[0], until)
    if json:
        paths = {"report": str(page), "policy": str(folder / "policy.cgap")}
        summary = summarise_defaults(results.records).to_dict("records")
        print_json({"results": summary, **paths, "stopping": saving})
        return
    _print_summary(rounds, ranked(results.records))
    print_card(policy)
    if saving is not None:
        out.print(
            f"{next(iter(contestants))} stopped after {saving['stopped_after']} of "
            f"{saving['of_steps']} steps ({100 * saving['saved']:.0f} % saved), average regret "
            f"{saving['average_regret']:.3g}; bounds: {saving['bounds']}",
            soft_wrap=True,
        )
    out.print(f"policy: {folder / 'policy.cgap'}\nreport: {page}", soft_wrap=True)


def _parts(
    samples: Sequence[Problem], sizes: ProblemOptions, *, held_out: bool
) -> tuple[Any, list[Pair]]:
    """Return contexts held out of the first sample, if asked for, and the pairs of all samples."""
    rows = len(samples[0])
    explore = sizes.explore or min(_MOST, rows // 2)
    left = (rows - explore) // (2 if held_out else 1)
    evaluate = sizes.evaluate or min(_MOST, max(1, left))
    split = (evaluate, explore, evaluate) if held_out else (explore, evaluate)
    parts = [sample.split(*split) for sample in samples]
    reference = parts[0][0].inputs if held_out else None
    return reference, [(part[-2], part[-1]) for part in parts]


def _settings(
    contexts: Any,
    kernel: str | None,
    bandwidth: float | None,
    ridge: float | None,
    scale: float | None,
) -> dict[str, Any]:
    """Return what the user set, for every learner; empty if all is to be learnt."""
    settings: dict[str, Any] = {} if scale is None else {"width": PosteriorWidth(scale)}
    if kernel is not None and bandwidth is not None:
        raise ValueError(
            f"--bandwidth is a Gaussian kernel's, got {bandwidth:g} and the kernel {kernel}; "
            "leave one of the two out"
        )
    if kernel is not None:
        settings["kernel"] = read_kernel(kernel)
    elif bandwidth is not None:
        settings["kernel"] = replace(Gaussian.from_contexts(contexts), bandwidth=bandwidth)
    elif ridge is not None:  # which a learner takes with a kernel only
        settings["kernel"] = Gaussian.from_contexts(contexts)
    return settings if ridge is None else {**settings, "ridge": ridge}


def _shares(steps: int, parts: Iterable[int], whole: int) -> list[int]:
    """Return these parts of the whole, in steps, rounded up."""
    return sorted({-(-steps * part // whole) for part in parts})


def _policy(
    explore: Problem,
    method: Method,
    seed: int,
    settings: Mapping[str, Any],
    rule: StoppingRule | None,
) -> Policy:
    """Return the policy of one exploration, which stops early if a rule says so."""
    learner = Learner(explore.arms, method=method, seed=seed, **settings)
    contexts: Any = explore.inputs
    if explore.columns is not None and explore.schema is None:
        contexts = [dict(zip(explore.columns, row, strict=True)) for row in contexts.tolist()]
    with one_thread():  # as the comparison, so that the policy is the one compared
        for _ in explored(learner, contexts, explore.observations):
            if rule is not None and learner.done(rule):
                break
        return learner.freeze()


def _saving(policy: Policy, pair: Pair, until: float) -> dict[str, Any]:
    """Return how much exploration stopping early saved, and what it cost."""
    explore, exploit = pair
    used, whole = sum(policy.counts.values()), len(explore)
    chosen = [exploit.arms.index(arm) for arm in policy.recommend(exploit.inputs)]
    return {
        "tolerance": until,
        "stopped_after": used,
        "of_steps": whole,
        "saved": 1 - used / whole,
        "average_regret": float(exploit.regret(chosen).mean()),
        "bounds": "heuristic" if policy.probability is None else policy.probability,
    }


def _print_summary(rounds: Sequence[Pair], table: DataFrame) -> None:
    explore, exploit = rounds[0]
    times = "" if len(rounds) == 1 else f", {len(rounds)} times"
    title = f"{explore.name}: {len(explore)} steps explored, then deployed on {len(exploit)} rows"
    print_table(title + times, list(table.columns), table.to_numpy().tolist())
    if same_rows(rounds):
        out.print(
            "rows in time order, the same each time: errors show the methods' own randomness only",
            soft_wrap=True,
        )
