"""`deltalog models`: the model state of a program whose rules may have several heads.

deltalog models choice.dl
r("a") ; r("b").
model 1: r("a")
model 2: r("b")
"""

from __future__ import annotations

import json
from typing import Annotated

import typer

from deltalog.cli.opening import read_and_parse
from deltalog.cli.options import GivenFile
from deltalog.cli.progress import Progress
from deltalog.cli.terminal import counted_noun, visible_text, write_note, write_result
from deltalog.language.values import plain_text, print_value, sort_key
from deltalog.runtime.models import Models, clause_text
from deltalog.runtime.models import models as models_of

EXAMPLE = "deltalog models choice.dl"


def models(
    file: GivenFile,
    *,
    models_max: Annotated[
        int,
        typer.Option("--models-max", metavar="COUNT", min=1, help="Give up at more models."),
    ] = 1000,
    is_json: Annotated[bool, typer.Option("--json", help="Write one JSON document.")] = False,
) -> None:
    """Show the model state and the minimal models of a program with disjunctive rules.

    A rule `a ; b :- c.` says that one of its heads holds, and facts may be disjunctive, too. Each
    line of the state holds in every model; each model shows what not all of them share.
    """
    found = models_of(read_and_parse(file, Progress()), models_max)
    if is_json:
        write_result(json.dumps(_models_record(found), ensure_ascii=False, default=plain_text))
        return
    for clause in found.state:
        write_result(visible_text(clause_text(clause)))
    shared = {clause[0] for clause in found.state if len(clause) == 1}
    for number, model in enumerate(found.minimal, 1):
        facts = [(name, row) for name in sorted(model) for row in sorted(model[name], key=sort_key)]
        own = [fact for fact in facts if fact not in shared]
        shown = ", ".join(f"{name}({', '.join(map(print_value, row))})" for name, row in own)
        write_result(visible_text(f"model {number}: {shown or 'nothing else'}"))
    models, clauses = len(found.minimal), len(found.state)
    write_note(f"{counted_noun(models, 'minimal model')}, {counted_noun(clauses, 'clause')}")


def _models_record(found: Models) -> dict[str, object]:
    state = [[{"relation": name, "fact": row} for name, row in clause] for clause in found.state]
    models_ = [
        {name: sorted(rows, key=sort_key) for name, rows in model.items()}
        for model in found.minimal
    ]
    return {"state": state, "models": models_}
