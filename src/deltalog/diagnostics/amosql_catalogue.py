"""The errors that only AMOSQL has; `catalogue.py` has all others, and `ENTRIES` both."""

from __future__ import annotations

from deltalog.diagnostics.entry import Entry

MISSING_SEMICOLON = Entry("E1301", "this statement never ends", "every statement ends with a `;`")
NAME_TAKEN = Entry("E1302", "`{name}` is already {kind}")
NO_RESOLVENT = Entry("E1303", "`{name}` is not defined for ({types})")
UNKNOWN_VARIABLE = Entry("E1304", "unknown variable `{name}`")
NOT_A_CONDITION = Entry("E1305", "this is not a condition")
NOT_A_VALUE = Entry("E1306", "a `select` has no single value")
ONE_VALUE = Entry("E1307", "this `select` must have one value")
RESULT_MISFIT = Entry("E1308", "this is {given}, but {type} is declared")
PROCEDURE_IN_QUERY = Entry(
    "E1309",
    "the procedure `{name}` cannot be called in a query",
    "queries, derived functions and conditions have no side effects",
)
RECURSIVE_COMPUTATION = Entry(
    "E1310",
    "`{name}` is computed from its own values",
    "a function that is not defined for all its arguments by data cannot be recursive",
)
LATE_BINDING = Entry(
    "E1311",
    "`{name}` cannot be one of several definitions",
    "which definition holds is decided for objects, and this one is computed for any argument",
)
OBJECT_IN_SCHEMA = Entry(
    "E1312",
    "`:{name}` cannot be used in a function or rule",
    "variables of a session end with it; use a parameter",
)
UNKNOWN_OBJECT = Entry("E1313", "`:{name}` has no value, and there is no object of this name")
OBJECT_MISFIT = Entry("E1314", "{value} is not of type `{type}`")
NOT_STORED = Entry(
    "E1315", "`{name}` is {kind} and has no values to change", "only stored functions have"
)
SCHEMA_IN_TRANSACTION = Entry(
    "E1316",
    "the schema cannot change between `begin;` and `commit;`",
    "a change of the schema is a transaction by itself",
)
NO_TRANSACTION = Entry("E1317", "there is no transaction to {verb}")
TRANSACTION_OPEN = Entry("E1318", "a transaction has begun already")
NOT_ONE_ROW = Entry("E1319", "`into` needs one row, but there are {count}")
NOT_A_STEP = Entry(
    "E1320",
    "a procedure cannot contain this",
    "its steps are `set`, `add` and `remove` of functions, and calls of procedures",
)
CALLS_LIMIT = Entry("E1321", "procedures call each other more than {limit} deep")
NOT_EXECUTED = Entry("E1322", "`{name}` is not a procedure, so there is nothing to execute")
BOUND_LATE = Entry(
    "E1323",
    "which definition of `{name}` a rule means depends on the object",
    "an action of a rule is fixed when the rule is created",
)
READS_CHANGED = Entry(
    "E1324",
    "this step of a rule's action reads `{name}`, which an earlier step changes",
    "all steps of an execution read the state before the first of them",
)
NOT_A_VARIABLE = Entry(
    "E1325",
    "the arguments of an event are variables and constants",
    "as in `on update quantity(i)`",
)
BAD_FOREIGN = Entry(
    "E1327", "{text} does not name a function", 'as in `foreign "orders:order"`, or `foreign` alone'
)
FOREIGN_OBJECT = Entry(
    "E1328",
    "the foreign function `{name}` cannot return objects",
    "a deterministic function of Python returns values that need no type of AMOSQL",
)
FOREIGN_UNKNOWN = Entry(
    "E1326",
    "no function is registered as `{name}`",
    "a foreign procedure is a function of Python; nothing is imported because a schema names it",
)
