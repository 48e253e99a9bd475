"""Filters by their definition, in plain Python: the oracle that the server is compared with."""

import functools
from datetime import datetime, timezone


def matches(point_id, payload, filter_):
    """Whether a point passes a filter in its JSON form."""
    must, should, must_not = (_listed(filter_, k) for k in ("must", "should", "must_not"))
    if not all(_holds(point_id, payload, c) for c in must):
        return False
    if should and not any(_holds(point_id, payload, c) for c in should):
        return False
    if any(_holds(point_id, payload, c) for c in must_not):
        return False
    at_least = filter_.get("min_should")
    if at_least:
        count = sum(_holds(point_id, payload, c) for c in at_least["conditions"])
        return count >= at_least["min_count"]
    return True


def _listed(filter_, clause):
    conditions = filter_.get(clause) or []
    return conditions if isinstance(conditions, list) else [conditions]


def _holds(point_id, payload, condition):
    if "has_id" in condition:
        return point_id in condition["has_id"]
    if "has_vector" in condition:
        # An element of an array has no id and no vectors; points here have the unnamed one.
        return point_id is not None and condition["has_vector"] == ""
    if "nested" in condition:
        key, inner = condition["nested"]["key"], condition["nested"]["filter"]
        elements = values_at(payload, key if key.endswith("[]") else f"{key}[]")
        return any(isinstance(e, dict) and matches(None, e, inner) for e in elements)
    if "is_empty" in condition and isinstance(condition["is_empty"], dict):
        return is_empty(values_at(payload, condition["is_empty"]["key"]))
    if "is_null" in condition and isinstance(condition["is_null"], dict):
        return is_null(values_at(payload, condition["is_null"]["key"]))
    if "key" not in condition:
        return matches(point_id, payload, condition)
    values = values_at(payload, condition["key"])
    if "values_count" in condition:
        counts = [_count(v) for v in values] or [0]
        return any(_inside(count, condition["values_count"]) for count in counts)
    if "is_empty" in condition:
        return is_empty(values) == condition["is_empty"]
    if "is_null" in condition:
        return is_null(values) == condition["is_null"]
    scalars = [s for v in values for s in (v if isinstance(v, list) else [v])]
    if "match" in condition:
        return any(_equal(s, condition["match"]) for s in scalars)
    return any(_inside(s, condition["range"]) for s in scalars)


def values_at(payload, path):
    """The values that a path leads to: `a.b` goes into objects, `a[].b` into every element."""
    values = [payload]
    for key, every in _steps(path):
        values = [v[key] for v in values if isinstance(v, dict) and key in v]
        if every:
            values = [element for v in values if isinstance(v, list) for element in v]
    return values


@functools.cache
def _steps(path):
    """The keys of a path, each with whether it goes into every element."""
    return [(s[:-2], True) if s.endswith("[]") else (s, False) for s in path.split(".")]


def is_empty(values):
    return all(v is None or v == [] for v in values)


def is_null(values):
    return any(v is None or (isinstance(v, list) and None in v) for v in values)


def _equal(value, match):
    if "value" in match:
        return _same(value, match["value"])
    if "any" in match:
        return any(_same(value, wanted) for wanted in match["any"])
    wanted = match["except"]
    return isinstance(value, (str, bool, int)) and not any(_same(value, unwanted) for unwanted in wanted)


def _same(value, wanted):
    return type(value) is type(wanted) and value == wanted


def _count(value):
    return 0 if value is None else len(value) if isinstance(value, list) else 1


def moment(text):
    """A datetime; without a zone it is in UTC."""
    read = datetime.fromisoformat(text)
    return read if read.tzinfo else read.replace(tzinfo=timezone.utc)


def _inside(value, range_):
    if any(isinstance(bound, str) for bound in range_.values()):
        try:
            value = moment(value)
        except (TypeError, ValueError):
            return False
        range_ = {k: moment(bound) for k, bound in range_.items() if bound is not None}
    elif isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    tests = {
        "lt": lambda bound: value < bound,
        "lte": lambda bound: value <= bound,
        "gt": lambda bound: value > bound,
        "gte": lambda bound: value >= bound,
    }
    return all(tests[k](bound) for k, bound in range_.items() if bound is not None)
