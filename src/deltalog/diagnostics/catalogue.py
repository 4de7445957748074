"""Every user-facing error: stable code, message, and a note that states the rule broken.

    UNKNOWN_PREDICATE.at(span, name="pth", hint="did you mean `path`?")

Codes never change their meaning. `docs/errors.md` is generated from this list, and every code has a
case file in `tests/cases/errors/` (or, for data and limits, a unit test) with its exact text.
"""

from __future__ import annotations

from deltalog.diagnostics import (
    amosql_catalogue,
    service_catalogue,
    source_catalogue,
    view_catalogue,
    why_catalogue,
)
from deltalog.diagnostics.entry import Entry as Entry
from deltalog.diagnostics.view_catalogue import REQUEST_OUTDATED as REQUEST_OUTDATED

# Syntax
UNEXPECTED_CHARACTER = Entry("E0101", "unexpected character {character}")
UNEXPECTED_TOKEN = Entry("E0102", "expected {expected}, found {found}")
UNTERMINATED = Entry("E0103", "{what} is never closed")
MISSING_STOP = Entry("E0104", "this statement never ends", "every statement ends with a `.`")
NUMBER_OUT_OF_RANGE = Entry(
    "E0105",
    "`{number}` is out of range",
    "an int lies between -(2^63 - 1) and 2^63 - 1; a float is finite",
)
BAD_LITERAL = Entry("E0106", "`{text}` is not a {type}")
RESERVED_NAME = Entry(
    "E0107",
    "the name `{name}` is reserved",
    "names with `__`, and variables like `_1`, are reserved for rewrites",
)
NOT_A_LITERAL = Entry(
    "E0108",
    "this is not a literal",
    "a body consists of atoms, negated atoms, comparisons, and disjunctions in parentheses",
)
UNKNOWN_TYPE = Entry("E0109", "unknown type `{name}`")
UNKNOWN_STATEMENT = Entry(
    "E0110",
    "unknown declaration `{words}`",
    "a declaration begins with `base`, `view`, `materialized view` or `virtual view`",
)
INCLUDE_FAILED = Entry("E0111", "cannot include `{name}`: {reason}")
BAD_ESCAPE = Entry(
    "E0112",
    "unknown escape `{escape}` in text",
    'the escapes are \\" \\\\ \\n \\t \\r and \\u{{1F600}}',
)
TOO_DEEP = Entry("E0113", "nested more than {depth_max} deep")
NOT_A_HEAD = Entry(
    "E0114", "a rule or fact begins with an atom", "as in `path(X, Y) :- edge(X, Y).`"
)
NOT_AN_EXPRESSION = Entry("E0115", "{what} is not allowed in an expression")
BAD_COLUMN = Entry("E0116", "`{word}` cannot follow a column's type", "only `key` can")
TOO_MANY_BRANCHES = Entry(
    "E0117", "the disjunctions of this rule combine to more than {branches_max} bodies"
)
TOO_MANY_LITERALS = Entry("E0118", "a body has at most {literals_max} literals")
PARAMETER_PLACE = Entry(
    "E0119",
    "the parameter `{name}` is not allowed here",
    "only queries have parameters; their values are passed with the query",
)

# Declarations
DECLARED_TWICE = Entry("E0201", "`{name}` is declared twice")
COLUMN_TWICE = Entry("E0202", "column `{name}` appears twice in `{predicate}`")
UNKNOWN_PREDICATE = Entry("E0203", "unknown predicate `{name}`")
WRONG_ARITY = Entry("E0204", "`{name}` takes {wanted}, got {given}")
RULE_FOR_BASE = Entry(
    "E0205",
    "a rule defines the base relation `{name}`",
    "base relations contain facts only; views have rules",
)
BAD_KEY = Entry("E0206", "column `{name}` cannot be a key", "{reason}")
TYPE_MISSING = Entry("E0207", "column `{name}` of base relation `{predicate}` needs a type")
VIEW_WITHOUT_RULES = Entry("E0208", "view `{name}` has no rules")
KEY_CONFLICT = Entry(
    "E0209", "two facts of `{name}` have the key {key}", "a key identifies at most one fact"
)
FUNCTION_AS_PREDICATE = Entry("E0210", "`{name}` is the name of a function, not of a predicate")
SYSTEM_NAME = Entry(
    "E0211",
    "the name `{name}` is reserved",
    "relations that begin with `sys_` describe the program and are read-only",
)

# Safety
UNBOUND_HEAD = Entry(
    "E0301",
    "variable `{name}` in the head is not bound by the body",
    "every variable must occur in a positive atom, or be set by `=` from ones that do",
)
UNBOUND_NEGATION = Entry(
    "E0302",
    "variable `{name}` in a negated atom is not bound elsewhere",
    "a negated atom only tests values that other literals supply",
)
UNBOUND_EXPRESSION = Entry(
    "E0303",
    "variable `{name}` has no value here",
    "every variable must occur in a positive atom, or be set by `=` from ones that do",
)
WILDCARD_VALUE = Entry("E0304", "`_` has no value that could be used here")
FACT_WITH_VARIABLE = Entry("E0305", "a fact cannot contain the variable `{name}`")
BRANCH_UNBOUND = Entry(
    "E0306",
    "variable `{name}` is bound in only some branches of this disjunction",
    "a variable used outside a disjunction must be bound in every branch",
)

# Types
TYPE_CONFLICT = Entry("E0401", "`{name}` is {first} here, but {second} there")
CONSTANT_MISFIT = Entry(
    "E0402", "{value} does not fit column {column} of `{name}`, which is {type}"
)
NO_SIGNATURE = Entry("E0403", "`{function}` is not defined for {operands}")
TYPE_UNKNOWN = Entry("E0404", "the type of column {column} of `{name}` cannot be inferred")
NULL_MISFIT = Entry(
    "E0405",
    "column {column} of `{name}` may be null here, but it is declared not null",
    "a column that may be null is declared with `?`, as in `{type}?`",
)
UNKNOWN_FUNCTION = Entry("E0406", "unknown function `{name}`")
FUNCTION_ARITY = Entry("E0407", "`{name}` takes {wanted}, got {given}")
NOT_COMPARABLE = Entry("E0408", "`{operator}` cannot compare {left} with {right}")
VARIABLE_TYPE_UNKNOWN = Entry("E0409", "the type of `{name}` cannot be inferred")

# Stratification
NEGATION_CYCLE = Entry(
    "E0501",
    "`{name}` depends on its own negation",
    "negation must be stratified: a predicate is complete before it is negated",
)
AGGREGATE_CYCLE = Entry(
    "E0502",
    "`{name}` depends on an aggregate of itself",
    "aggregation must be stratified: a predicate is complete before it is aggregated",
)

# Aggregates
AGGREGATE_PLACE = Entry(
    "E0601", "the aggregate `{name}` is only allowed as an argument of a rule's head"
)
AGGREGATE_ARITY = Entry("E0602", "`{name}` takes {wanted}, got {given}")
AGGREGATE_BRANCHES = Entry(
    "E0603",
    "variable `{name}` is missing in a branch of this disjunction",
    "in a rule with an aggregate every branch binds the same variables, "
    "since the aggregate ranges over the bindings of all of them",
)
AGGREGATE_TYPE = Entry("E0604", "`{function}` is not defined for {type}")
AGGREGATE_FACT = Entry("E0605", "the aggregate `{name}` needs a body to range over")

# Data
NO_SUCH_RELATION = Entry("E0701", "there is no relation `{name}`")
NOT_BASE = Entry(
    "E0702", "`{name}` is a view and cannot be changed directly", "only base relations are changed"
)
ROW_ARITY = Entry("E0703", "a fact of `{name}` has {wanted}, but {row} {has}")
VALUE_MISFIT = Entry("E0704", "{value} does not fit column `{column}` of `{name}`, which is {type}")
KEY_TAKEN = Entry(
    "E0705",
    "`{name}` already contains the fact {row} with the key {key}",
    "a key identifies at most one fact",
)
NO_KEY = Entry("E0706", "`{name}` has no key, so `set` cannot replace anything")
CANNOT_READ = Entry("E0707", "cannot read `{name}`: {reason}")
BAD_RECORD = Entry("E0708", "{place}: {reason}")
UNKNOWN_FORMAT = Entry("E0709", "`{name}` has an unknown file format")
UNKNOWN_OPTION = Entry("E0710", "unknown {what} `{name}`")
CANNOT_WRITE = Entry("E0711", "cannot write `{name}`: {reason}")
TRANSACTION_OVER = Entry("E0712", "this transaction has already ended")
PROGRAM_NOT_FOUND = Entry("E0713", "cannot read the program `{name}`: {reason}")
STRATEGY_CONFLICT = Entry(
    "E0714",
    "{names} depend on each other and cannot have different strategies",
    "mutually recursive views share one strategy",
)
STRATEGY_MISFIT = Entry("E0715", "the strategy `{strategy}` does not fit `{name}`: {reason}")
ENGINE_NEEDS = Entry("E0716", "the engine `{name}` needs {needed}, which is not installed")
COLUMNS_DIFFER = Entry(
    "E0717",
    "the columns of {what} do not match `{name}`: {reason}",
    "named columns are matched by name, all others by position",
)
PACKAGE_NEEDED = Entry("E0718", "`{name}` needs the package {needed}, which is not installed")
PARAMETER_MISSING = Entry("E0719", "the parameter `${name}` has no value")
UNKNOWN_PARAMETER = Entry("E0720", "the query has no parameter `${name}`")
PARAMETER_MISFIT = Entry("E0721", "{value} does not fit the parameter `${name}`, which is {type}")
NO_HISTORY = Entry(
    "E0722",
    "there is no version {version}: a database {kind} has only its current state",
    "earlier versions are kept in database files",
)
PASS_NOT_RUN = Entry("E0723", "the pass `{name}` does not run here: {reason}")
ARGUMENT_MISFIT = Entry("E0724", "`{name}` does not fit a database {kind}: {reason}")
VERB_UNAVAILABLE = Entry("E0725", "`{verb}` is not available in a database {kind}")
WRONG_ARGUMENT = Entry("E0726", "`{name}` cannot be {value}")
KEY_SET_TWICE = Entry(
    "E0727",
    "{rows} set the key {key} of `{name}` to different facts",
    "one `set` gives each key one fact",
)

# Limits
ROUNDS_LIMIT = Entry(
    "E0801",
    "stopped after {limit} rounds without reaching a fixpoint",
    "the limit is `rounds_max`; nothing has changed",
)
FACTS_LIMIT = Entry(
    "E0802",
    "stopped after generating more than {limit} facts",
    "the limit is `facts_max`; nothing has changed",
)
SECONDS_LIMIT = Entry(
    "E0803", "stopped after {limit} seconds", "the limit is `seconds_max`; nothing has changed"
)

FIRINGS_LIMIT = Entry(
    "E0804",
    "stopped after {limit} executions of active rules, which trigger each other: {cycle}",
    "the limit is `firings_max`; nothing has changed",
)

# Database files
CANNOT_OPEN = Entry("E0901", "cannot open the database `{name}`: {reason}")
NOT_A_DATABASE = Entry("E0902", "`{name}` is not a Deltalog database")
FILE_DAMAGED = Entry(
    "E0903", "`{name}` is damaged: {reason}", "facts are not read from a damaged file"
)
FORMAT_TOO_NEW = Entry(
    "E0904",
    "`{name}` has format {found}, but this version of Deltalog supports formats up to {known}",
    "it was written by a newer version of Deltalog",
)
FILE_IN_USE = Entry("E0905", "{owner} is writing to `{name}`", "a file has one writer")
COMMIT_FAILED = Entry("E0906", "cannot write to `{name}`: {reason}", "nothing has changed")
OPENED_READ_ONLY = Entry("E0907", "`{name}` is open read-only")
PROGRAM_DIFFERS = Entry(
    "E0908",
    "the program in `{name}` is a different one",
    "a database file contains its own program",
)
NO_SUCH_VERSION = Entry(
    "E0909", "there is no version {version} in `{name}`; its log covers versions {first} to {last}"
)
NO_SUCH_READER = Entry("E0910", "no reader `{name}` is registered")
DATABASE_CLOSED = Entry("E0911", "{name} has been closed")
FILE_EXISTS = Entry("E0912", "`{name}` already exists")
GROUP_OPEN = Entry("E0913", "not possible inside a group of transactions")
FILE_MOVED = Entry(
    "E0914",
    "`{name}` has been removed, renamed or replaced while it was open",
    "commits went to the file that was originally opened",
)

# Pipelines
STATE_IN_USE = Entry("E1001", "{owner} is working on the state `{name}`", "a state has one writer")
STATE_OF_OTHER_PROGRAM = Entry(
    "E1002",
    "the state `{name}` was created by a different program",
    "its views were derived by the old rules",
)
BAD_PROJECT = Entry("E1003", "{reason}")
SOURCE_COLUMNS = Entry(
    "E1004",
    "the columns of {what} do not match `{relation}`: {reason}",
    "a source has the columns of its relation{op}",
)
BAD_ROWS = Entry(
    "E1005",
    "{count} of batch `{batch}` of source `{name}` rejected: {reason}",
    "the whole batch was rejected",
)
STATE_CLOSED = Entry("E1006", "the state `{name}` is closed")
CHECK_REFUSED = Entry("E1007", "the change was refused: {reason}", "nothing has changed")
SINK_FAILED = Entry("E1008", "sink `{name}` failed at version {version}: {reason}")
SPARK_NOT_STARTED = Entry("E1009", "Spark does not start: {reason}")
FEED_COLUMNS = Entry(
    "E1020",
    "the feed of `{name}` has a new column `{column}`",
    "a stream keeps the columns with which it began",
)

# Constraints
CONSTRAINT_VIOLATED = Entry(
    "E1101", "{message}", "`{constraint}` is violated by {fact}{reason}; nothing has changed"
)
CONSTRAINT_TWICE = Entry("E1102", "there are two constraints `{name}`")
BAD_CONSTRAINT = Entry("E1103", "{reason}", "{form}")
UNKNOWN_PLACEHOLDER = Entry(
    "E1104", "`{placeholder}` in the message is not a variable of {where}", "{note}"
)

# Active rules
RULE_TWICE = Entry("E1201", "there are two rules `{name}`")
BAD_RULE = Entry("E1202", "{reason}")
UNBOUND_IN_RULE = Entry(
    "E1203",
    "variable `{name}` in {where} has no value",
    "actions use variables of event and condition; those of `else` are variables of the instance",
)
REJECTED = Entry("E1204", "{message}", "rejected by the rule `{rule}`; nothing has changed")
UNKNOWN_ACTION = Entry(
    "E1205",
    "the rule `{rule}` calls `{name}`, which is not registered",
    "functions are registered before the first transaction",
)
UNKNOWN_RULE = Entry("E1206", "there is no rule `{name}`")
BAD_ACTIVATION = Entry("E1207", "`{name}` takes {wanted}, got {given}")
CHANGE_IN_ACTION = Entry(
    "E1208",
    "the database cannot be changed by a function that a rule calls",
    "such a function runs inside a transaction, and returns its changes",
)
BAD_RESULT = Entry(
    "E1209",
    "`{name}` has returned {value}",
    "a function that a rule calls returns nothing, or a mapping with `insert`, `delete` or `set`",
)
BAD_PARAMETER = Entry(
    "E1210", "{value} does not fit the parameter `{parameter}` of `{name}`, which is {type}"
)

WARNINGS = {
    "may_not_end": Entry(
        "W1201",
        "these rules may trigger each other for ever: {cycle}",
        "a transaction that does not end is stopped by `firings_max`",
    )
}
"""Problems that prevent nothing."""

ENTRIES: dict[str, Entry] = {
    entry.code: entry
    for entry in (
        *globals().values(),
        *vars(amosql_catalogue).values(),
        *vars(view_catalogue).values(),
        *vars(why_catalogue).values(),
        *vars(service_catalogue).values(),
        *vars(source_catalogue).values(),
    )
    if isinstance(entry, Entry)
}
