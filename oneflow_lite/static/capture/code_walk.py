"""What a code object names: globals, attributes and modules that it loads or stores.

Asked while `flow.compile` looks for what a function reads from outside; nothing is run here.
"""

from __future__ import annotations

import dis
import functools
import inspect
from collections.abc import Iterator
from types import CodeType

import attrs

Path = tuple[str, ...]

_GLOBAL = {"LOAD_GLOBAL", "STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}
_FREE = {"LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"}
_ATTRIBUTE = {
    "LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "LOAD_SUPER_METHOD", "LOAD_ZERO_SUPER_ATTR",
    "LOAD_ZERO_SUPER_METHOD", "STORE_ATTR", "DELETE_ATTR", "IMPORT_FROM",
}  # fmt: skip
_IGNORED = {"CACHE", "EXTENDED_ARG", "NOP", "PUSH_NULL", "PRECALL"}
# Instructions of Python 3.11 to 3.14 that reach nothing but the frame's own values; those of
# coroutines are left out.
_LOCAL = set(
    """
    BEFORE_WITH BINARY_OP BINARY_SLICE BINARY_SUBSCR BUILD_CONST_KEY_MAP
    BUILD_INTERPOLATION BUILD_LIST BUILD_MAP BUILD_SET BUILD_SLICE BUILD_STRING BUILD_TEMPLATE
    BUILD_TUPLE CALL CALL_FUNCTION_EX CALL_INTRINSIC_1 CALL_INTRINSIC_2 CALL_KW CHECK_EG_MATCH
    CHECK_EXC_MATCH CLEANUP_THROW COMPARE_OP CONTAINS_OP CONVERT_VALUE COPY COPY_FREE_VARS
    DELETE_DEREF DELETE_FAST DELETE_NAME DELETE_SUBSCR DICT_MERGE DICT_UPDATE END_FOR END_SEND
    EXIT_INIT_CHECK FORMAT_SIMPLE FORMAT_VALUE FORMAT_WITH_SPEC FOR_ITER GET_ITER GET_LEN
    GET_YIELD_FROM_ITER INTERPRETER_EXIT IS_OP JUMP JUMP_BACKWARD
    JUMP_BACKWARD_NO_INTERRUPT JUMP_FORWARD JUMP_IF_FALSE_OR_POP JUMP_IF_TRUE_OR_POP
    JUMP_NO_INTERRUPT KW_NAMES LIST_APPEND LIST_EXTEND LIST_TO_TUPLE LOAD_ASSERTION_ERROR
    LOAD_BUILD_CLASS LOAD_CLOSURE LOAD_COMMON_CONSTANT LOAD_CONST LOAD_CONST_IMMORTAL
    LOAD_CONST_MORTAL LOAD_FAST LOAD_FAST_AND_CLEAR LOAD_FAST_BORROW
    LOAD_FAST_BORROW_LOAD_FAST_BORROW LOAD_FAST_CHECK LOAD_FAST_LOAD_FAST LOAD_LOCALS
    LOAD_SMALL_INT LOAD_SPECIAL MAKE_CELL MAKE_FUNCTION MAP_ADD MATCH_KEYS MATCH_MAPPING
    MATCH_SEQUENCE NOT_TAKEN POP_BLOCK POP_EXCEPT POP_ITER POP_JUMP_BACKWARD_IF_FALSE
    POP_JUMP_BACKWARD_IF_NONE POP_JUMP_BACKWARD_IF_NOT_NONE POP_JUMP_BACKWARD_IF_TRUE
    POP_JUMP_FORWARD_IF_FALSE POP_JUMP_FORWARD_IF_NONE POP_JUMP_FORWARD_IF_NOT_NONE
    POP_JUMP_FORWARD_IF_TRUE POP_JUMP_IF_FALSE POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE
    POP_JUMP_IF_TRUE POP_TOP PREP_RERAISE_STAR PUSH_EXC_INFO RAISE_VARARGS RERAISE RESUME
    RETURN_CONST RETURN_GENERATOR RETURN_VALUE SEND SETUP_ANNOTATIONS SETUP_CLEANUP SETUP_FINALLY
    SETUP_WITH SET_ADD SET_FUNCTION_ATTRIBUTE SET_UPDATE STORE_DEREF STORE_FAST
    STORE_FAST_LOAD_FAST STORE_FAST_MAYBE_NULL STORE_FAST_STORE_FAST STORE_NAME STORE_SLICE
    STORE_SUBSCR SWAP TO_BOOL UNARY_INVERT UNARY_NEGATIVE UNARY_NOT UNARY_POSITIVE UNPACK_EX
    UNPACK_SEQUENCE WITH_EXCEPT_START YIELD_VALUE
    """.split()
)
# Attributes that lead to others whose names do not stand in the code: "{0.scale}".format(obj).
REFLECTIVE = frozenset(
    """
    __closure__ __code__ __dict__ __getattr__ __getattribute__ __globals__ format format_map
    """.split()
)
IMPORTABLE = frozenset(
    """
    __future__ abc collections contextlib dataclasses enum functools itertools math numbers
    oneflow_lite typing
    """.split()
)
_COROUTINE = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR | inspect.CO_ITERABLE_COROUTINE


@attrs.frozen
class CodeFacts:
    """What one code object, without those nested in it, names.

    Attributes
    ----------
    globals, free : frozenset of tuple of str
        Global names and closure variables, each with the attributes that are taken of it at once:
        `flow.nn.Linear` is ("flow", "nn", "Linear").
    attributes : frozenset of str
        Names of all attributes that are loaded, stored or deleted, of whatever object.
    any_attribute : bool
        Whether attributes may be reached whose names do not stand in the code.
    imports : frozenset of str
        The modules that it imports.
    catches : bool
        Whether it catches exceptions.
    reasons : tuple of str
        Why a call of it cannot be replayed.
    nested : tuple of code
        Functions, lambdas, comprehensions and class bodies inside it.
    """

    globals: frozenset[Path]
    free: frozenset[Path]
    attributes: frozenset[str]
    any_attribute: bool
    imports: frozenset[str]
    catches: bool
    reasons: tuple[str, ...]
    nested: tuple[CodeType, ...]


@functools.lru_cache(maxsize=4096)
def walk(code: CodeType) -> CodeFacts:
    """Return what a code object names.

    Examples
    --------
    >>> from oneflow_lite.static.capture.code_walk import walk
    >>> facts = walk((lambda x: flow.relu(x).scale * factor).__code__)
    >>> sorted(facts.globals), sorted(facts.attributes)
    ([('factor',), ('flow', 'relu')], ['relu', 'scale'])
    """
    globals_: set[Path] = set()
    free: set[Path] = set()
    attributes: set[str] = set()
    imports: set[str] = set()
    reasons: list[str] = []
    any_attribute = False
    instructions = [i for i in dis.get_instructions(code) if i.opname not in _IGNORED]
    for position, instruction in enumerate(instructions):
        name = instruction.opname
        if name in _GLOBAL or name in _FREE:
            path = (str(instruction.argval), *_attributes_after(instructions, position))
            (globals_ if name in _GLOBAL else free).add(path)
        elif name in _ATTRIBUTE:
            attributes.add(instruction.argval)
        elif name == "MATCH_CLASS":  # the class says which attributes a positional pattern reads
            any_attribute = True
        elif name == "IMPORT_NAME":
            imports.add(instruction.argval)
            level = instructions[position - 2].argval
            if level != 0 or instruction.argval.partition(".")[0] not in IMPORTABLE:
                reasons.append(f"imports {instruction.argval or 'a sibling module'} while it runs")
        elif name not in _LOCAL:
            reasons.append(f"unknown instruction {name}")
    if code.co_flags & _COROUTINE:
        reasons.append("is a coroutine")
    where = f"{code.co_name} ({code.co_filename}:{code.co_firstlineno})"
    return CodeFacts(
        frozenset(globals_),
        frozenset(free),
        frozenset(attributes),
        any_attribute or not REFLECTIVE.isdisjoint(attributes),
        frozenset(imports),
        any(i.opname in ("CHECK_EXC_MATCH", "CHECK_EG_MATCH") for i in instructions),
        tuple(f"{where} {reason}" for reason in dict.fromkeys(reasons)),
        tuple(const for const in code.co_consts if isinstance(const, CodeType)),
    )


def _attributes_after(instructions: list[dis.Instruction], position: int) -> Iterator[str]:
    """Go through the attributes taken, one of the other, of what an instruction loads."""
    for instruction in instructions[position + 1 :]:
        if instruction.opname not in _ATTRIBUTE or instruction.is_jump_target:
            return
        yield str(instruction.argval)


def nested_codes(code: CodeType) -> Iterator[CodeType]:
    """Go through a code object and all that are nested in it."""
    work = [code]
    while work:
        code = work.pop()
        yield code
        work.extend(walk(code).nested)
