"""Pictures of what `why`, `why_not` and `why_changed` return.

They are Mermaid or DOT for tools that draw it, or an interactive page.
"""

from __future__ import annotations

from typing import Literal as OneOf
from typing import get_args

from deltalog.diagnostics.arguments import check_argument
from deltalog.graphs.dot import dot_text
from deltalog.graphs.mermaid import mermaid_text
from deltalog.graphs.page import page_html
from deltalog.graphs.proof_graph import Drawable, answer_graph

_FORMS = {"mermaid": mermaid_text, "dot": dot_text, "html": page_html}


def picture(answer: Drawable, form: OneOf["mermaid", "dot", "html"] = "mermaid") -> str:
    """Draw a proof, or what blocks a fact or changed it, as text in one of these forms."""
    hint = "it is what `why`, `why_not` or `why_changed` returned"
    check_argument(isinstance(answer, get_args(Drawable)), "answer", answer, hint)
    check_argument(form in _FORMS, "form", form, "it is `mermaid`, `dot` or `html`")
    return _FORMS[form](answer_graph(answer))
