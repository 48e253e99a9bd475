"""A client that changes what stands above points: collections, aliases, field indexes, settings.

Like the writers it knows what must be there. Its collections hold a few points, so that one which
came back after it was deleted, or was made anew and holds what the old one held, is seen.
"""

import copy
import random
import threading

from flatwater_process import CutOff, Session

NAMES = [f"passing-{n}" for n in range(3)]
ALIASES = [f"alias-{n}" for n in range(3)]
FIELDS = {"bucket": "integer", "owner": "integer", "mark": "integer", "word": "keyword"}
THRESHOLDS = [1, 5, 20]


class Keeper(threading.Thread):
    """One operation after the other; `steady` are collections that it only changes settings of."""

    def __init__(self, server, steady, seed, state=None):
        super().__init__(name="keeper", daemon=True)
        self.server, self.session, self.steady = server, Session(server), steady
        self.random = random.Random(f"{seed}/keeper")
        self.state = state or {
            "collections": {},  # name -> {point id: version}
            "aliases": {},
            "fields": {name: {} for name in steady},
            "thresholds": {name: THRESHOLDS[0] for name in steady},
        }
        self.pending = None  # The state after the operation in flight.
        self.acknowledged, self.refusal = 0, None

    def run(self):
        while True:
            after = copy.deepcopy(self.state)
            operation = self.random.choice(
                [self.collection, self.points, self.points, self.alias, self.field, self.threshold]
            )
            request = operation(after)
            if request is None:
                continue
            self.pending = after
            try:
                reply = self.session.call(*request)
            except CutOff:
                return
            if reply.status != 200:
                self.refusal = request, reply
                return
            self.state, self.pending = after, None
            self.acknowledged += 1

    def collection(self, after):
        """Makes one, or deletes it with its points and its aliases."""
        name = self.random.choice(NAMES)
        if name not in after["collections"]:
            after["collections"][name] = {}
            return "PUT", f"/collections/{name}", {"vectors": {"size": 2, "distance": "Dot"}}
        del after["collections"][name]
        after["aliases"] = {a: c for a, c in after["aliases"].items() if c != name}
        return "DELETE", f"/collections/{name}"

    def points(self, after):
        """Some points of a passing collection, through an alias if it has one."""
        if not after["collections"]:
            return None
        name, held = self.random.choice(sorted(after["collections"].items()))
        version = self.random.randrange(1000)
        ids = self.random.sample(range(20), 4)
        held |= dict.fromkeys(ids, version)
        names = [name, *(a for a, c in after["aliases"].items() if c == name)]
        points = [{"id": i, "vector": [i, version]} for i in ids]
        return "PUT", f"/collections/{self.random.choice(names)}/points", {"points": points}

    def alias(self, after):
        """Makes an alias, moves it or takes it away; two actions at once when it moves."""
        alias = self.random.choice(ALIASES)
        actions = []
        if after["aliases"].pop(alias, None):
            actions.append({"delete_alias": {"alias_name": alias}})
        if not actions or self.random.random() < 0.7:
            target = self.random.choice([*self.steady, *after["collections"]])
            after["aliases"][alias] = target
            names = {"collection_name": target, "alias_name": alias}
            actions.append({"create_alias": names})
        return "POST", "/collections/aliases", {"actions": actions}

    def field(self, after):
        """Indexes a field of a collection under load, or drops its index."""
        name, field = self.random.choice(self.steady), self.random.choice(list(FIELDS))
        wait = self.random.choice(["true", "false"])
        fields = after["fields"][name]
        if fields.pop(field, None):
            return "DELETE", f"/collections/{name}/index/{field}?wait={wait}"
        fields[field] = FIELDS[field]
        body = {"field_name": field, "field_schema": FIELDS[field]}
        return "PUT", f"/collections/{name}/index?wait={wait}", body

    def threshold(self, after):
        name, threshold = self.random.choice(self.steady), self.random.choice(THRESHOLDS)
        after["thresholds"][name] = threshold
        body = {"optimizers_config": {"indexing_threshold": threshold}}
        return "PATCH", f"/collections/{name}", body

    def settle(self, why):
        """Compares what is there with what must be, and takes on how the last operation went."""
        assert self.refusal is None, f"{why}: {self.refusal}"
        found = self.look()
        if found != self.state:
            assert found == self.pending, f"{why}: is {found}, must be {self.state} or {self.pending}"
        self.state, self.pending = found, None

    def look(self):
        def ask(path):
            return self.server.call("GET", path).result

        names = {c["name"] for c in ask("/collections")["collections"]} - set(self.steady)
        aliases = ask("/aliases")["aliases"]
        infos = {name: ask(f"/collections/{name}") for name in self.steady}
        return {
            "collections": {
                name: {p["id"]: p["vector"][1] for p in self.server.scroll_all(name)} for name in names
            },
            "aliases": {a["alias_name"]: a["collection_name"] for a in aliases},
            "fields": {
                name: {field: schema["data_type"] for field, schema in info["payload_schema"].items()}
                for name, info in infos.items()
            },
            "thresholds": {
                name: info["config"]["optimizer_config"]["indexing_threshold"]
                for name, info in infos.items()
            },
        }
