"""Results as text and as JSON."""

from collections.abc import Sequence
from typing import Any

from lab.stf.run import Outcome, Result, totals

_REASON_LINES = 3  # of a compiler's messages; --json has all
_INDENT = " " * 13


def lines(result: Result) -> str:
    """A case: outcome, name, and why."""
    reason = result.reason.splitlines()
    shown = reason[:_REASON_LINES] + (["…"] if len(reason) > _REASON_LINES else [])
    return f"\n{_INDENT}".join([f"{result.outcome:<12} {result.name}", *shown])


def summary(results: Sequence[Result], seconds: float) -> str:
    """Totals: a line a tier, where there are tiers, and one for all."""
    tiers = sorted({result.tier for result in results if result.tier})
    rows = [(tier, [result for result in results if result.tier == tier]) for tier in tiers]
    return "\n".join([*(f"{tier}: {_counts(some)}" for tier, some in rows), f"{_counts(results)} in {seconds:.1f} s"])


def _counts(results: Sequence[Result]) -> str:
    counts = totals(results)
    others = [f"{counts[outcome]} {outcome}" for outcome in Outcome if outcome is not Outcome.PASS and counts[outcome]]
    return ", ".join([f"{counts[Outcome.PASS]} of {len(results)} passed", *others])


def as_json(results: Sequence[Result]) -> dict[str, Any]:
    """As `plait stf --json` prints it."""
    cases = [
        {"name": result.name, "tier": result.tier, "outcome": str(result.outcome), "reason": result.reason}
        for result in results
    ]
    return {"total": len(results), "pass": totals(results)[Outcome.PASS], "cases": cases}
