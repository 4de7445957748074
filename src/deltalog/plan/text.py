"""Plans as text, for `deltalog explain` and for case files."""

from __future__ import annotations

from collections.abc import Iterable

from deltalog.language.values import print_value
from deltalog.plan.nodes import (
    Absent,
    Assign,
    Fixed,
    Match,
    Operand,
    Overlay,
    Pipeline,
    RulePlan,
    Slot,
    Step,
    Test,
    Total,
    Window,
)


def plan_text(plans: Iterable[RulePlan]) -> str:
    """Every rule with its pipelines, a step a line."""
    return "\n".join(_rule_lines(plan) for plan in plans)


def _rule_lines(plan: RulePlan) -> str:
    lines = [f"{plan.head}:"]
    if plan.initial is not None:
        lines += _pipeline_lines("once", plan.initial, plan)
    for relation, variant in zip(plan.occurrences, plan.variants, strict=True):
        lines += _pipeline_lines(f"for new rows of {relation}", variant, plan)
    if plan.aggregation is not None:
        lines += _pipeline_lines("bindings of a group", plan.aggregation.bindings, None)
        totals = ", ".join(
            f"{total.function}({'' if total.column is None else f'column {total.column}'})"
            for total in plan.aggregation.head
            if isinstance(total, Total)
        )
        lines.append(f"  totals {totals}")
    return "\n".join(lines)


def _pipeline_lines(title: str, pipeline: Pipeline, plan: RulePlan | None) -> list[str]:
    lines = [f"  {title}" + (f", inputs {_slot_list(pipeline.inputs)}" if pipeline.inputs else "")]
    lines += [f"    {_step_text(step)}" for step in pipeline.steps]
    what = "bindings" if plan is None else "group" if plan.aggregation is not None else plan.head
    lines.append(f"    emit {what}({', '.join(_operand_text(value) for value in pipeline.output)})")
    return lines


def _slot_list(number: int) -> str:
    return ", ".join(f"${i}" for i in range(number))


def _step_text(step: Step) -> str:
    match step:
        case Match():
            rows = "" if step.window is Window.ALL else f"{step.window.value} "
            parts = [
                f"#{column}={_operand_text(value)}" for column, value in (*step.key, *step.same)
            ]
            key = f" where {', '.join(parts)}" if parts else ""
            bind = ", ".join(f"{_operand_text(slot)}=#{column}" for column, slot in step.bind)
            return f"match {rows}{_relation_text(step.relation)}{key}" + (
                f" -> {bind}" if bind else ""
            )
        case Absent():
            key = ", ".join(f"#{column}={_operand_text(value)}" for column, value in step.key)
            return f"absent {_relation_text(step.relation)}" + (f" where {key}" if key else "")
        case Test():
            return f"test {_operand_text(step.left)} {step.operator} {_operand_text(step.right)}"
        case Assign():
            return f"let {_operand_text(step.slot)} = {_operand_text(step.value)}"


def _relation_text(relation: str | Overlay) -> str:
    if isinstance(relation, str):
        return relation
    plus = f" with {relation.plus}" if relation.plus is not None else ""
    return f"[{relation.stored} without {relation.minus}{plus}]"


def _operand_text(operand: Operand) -> str:
    match operand:
        case Slot(index=index):
            return f"${index}"
        case Fixed(value=value):
            return print_value(value)
    return f"{operand.function}({', '.join(_operand_text(inner) for inner in operand.operands)})"
