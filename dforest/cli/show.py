"""What commands found, as lines for people."""

from typing import Any

from dforest.jobs.plan import as_size


def plan(found: dict[str, Any]) -> list[str]:
    """One line a step, the totals, and the limit."""
    head = f"{'step':16}{'tasks':>8}{'reads':>12}{'writes':>12}{'memory/task':>14}"
    lines = [f"{found['kind']} -> {found['output']}", "", head]
    total = {"name": "in all", **found}
    for step in (*found["steps"], total):
        sizes = (as_size(step[key]) for key in ("bytes_read", "bytes_written"))
        cells = "".join(f"{size:>12}" for size in sizes)
        memory = as_size(step["memory_per_task"])
        is_done = "  done before" if step.get("done") else ""
        lines.append(f"{step['name']:16}{step['tasks']:>8}{cells}{memory:>14}{is_done}")
    limit, of = found["memory_limit"], found["memory_limit_of"]
    if of:
        return [*lines, "", f"a task may take {as_size(limit)}: {of}"]
    return [*lines, "", "what a task may take is known when the workers run (or memory_per_task)"]


def facts(found: dict[str, Any], indent: str = "") -> list[str]:
    """One line a fact, nested ones indented.

    >>> facts({"format": "matrix", "more": {"tile": 2}})
    ['format             matrix', 'more', '  tile             2']
    """
    lines = []
    for key, value in found.items():
        if isinstance(value, dict):
            lines += [f"{indent}{key}", *facts(value, indent + "  ")]
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            rows = (", ".join(f"{name} {cell}" for name, cell in row.items()) for row in value)
            lines += [f"{indent}{key}", *(f"{indent}  {row}" for row in rows)]
        else:
            text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            lines.append(f"{indent}{key:18} {text}")
    return lines


def checks(found: list[dict[str, Any]]) -> list[str]:
    """One line a check: ok or not, what was found, and what to do."""
    return [f"{'ok ' if one['ok'] else 'NO '} {one['name']:16} {one['found']}" for one in found]
