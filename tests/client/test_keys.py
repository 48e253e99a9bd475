"""API keys: who may read and who may write, over REST and gRPC."""

import grpc
import pytest
from qdrant_client import models
from qdrant_client.http.exceptions import UnexpectedResponse

KEYS = {"API_KEY": "writer-1", "ALT_API_KEY": "writer-2", "READ_ONLY_API_KEY": "reader-1"}
COLLECTION = "c"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    from flatwater_process import Server

    settings = {f"QDRANT__SERVICE__{name}": key for name, key in KEYS.items()}
    server = Server(tmp_path_factory.mktemp("guarded"), settings).start()
    client = server.client(api_key="writer-1", https=False)
    client.create_collection(
        COLLECTION, vectors_config=models.VectorParams(size=2, distance=models.Distance.DOT)
    )
    client.upsert(COLLECTION, [models.PointStruct(id=1, vector=[1, 2], payload={"a": 1})])
    client.close()
    yield server
    server.stop(within=10)
    assert not any(key in server.log() for key in KEYS.values()), "a key is in the log"


@pytest.fixture(params=[False, True], ids=["rest", "grpc"])
def connect(request, guarded):
    """connect(key) -> a client over one of the protocols."""
    made = []

    def make(key, **options):
        options = {"api_key": key, "https": False} if key else {}
        made.append(guarded.client(grpc=request.param, **options))
        return made[-1]

    yield make
    for client in made:
        client.close()


def code_of(call):
    """The HTTP code of what a call comes to, whichever protocol it went over."""
    codes = {
        grpc.StatusCode.UNAUTHENTICATED: 401,
        grpc.StatusCode.PERMISSION_DENIED: 403,
        grpc.StatusCode.NOT_FOUND: 404,
    }
    try:
        call()
    except UnexpectedResponse as error:
        return error.status_code, error.structured()["status"]["error"]
    except grpc.RpcError as error:
        return codes[error.code()], error.details()
    return 200, ""


READS = {
    "collections": lambda c: c.get_collections(),
    "info": lambda c: c.get_collection(COLLECTION),
    "exists": lambda c: c.collection_exists(COLLECTION),
    "retrieve": lambda c: c.retrieve(COLLECTION, [1]),
    "scroll": lambda c: c.scroll(COLLECTION),
    "count": lambda c: c.count(COLLECTION),
    "query": lambda c: c.query_points(COLLECTION, [1.0, 2.0]),
}

WRITES = {
    "create": lambda c: c.create_collection(
        "other", models.VectorParams(size=2, distance=models.Distance.DOT)
    ),
    "delete collection": lambda c: c.delete_collection("other"),
    "upsert": lambda c: c.upsert(COLLECTION, [models.PointStruct(id=2, vector=[1, 2])]),
    "delete": lambda c: c.delete(COLLECTION, [2]),
    "set payload": lambda c: c.set_payload(COLLECTION, {"b": 1}, points=[1]),
    "create index": lambda c: c.create_payload_index(COLLECTION, "a", "integer"),
    "delete index": lambda c: c.delete_payload_index(COLLECTION, "a"),
}


@pytest.mark.parametrize("key", ["writer-1", "writer-2"])
def test_either_writers_key_may_do_everything(connect, key):
    client = connect(key)
    for what, call in (WRITES | READS).items():
        assert code_of(lambda: call(client)) == (200, ""), what
    client.delete_collection("other")


def test_the_read_only_key_reads_and_may_not_write(guarded, connect):
    client = connect("reader-1")
    before = guarded.call(
        "GET", f"/collections/{COLLECTION}", headers={"api-key": "writer-1"}
    ).result
    for what, call in READS.items():
        assert code_of(lambda: call(client)) == (200, ""), what
    for what, call in WRITES.items():
        code, text = code_of(lambda: call(client))
        assert code == 403 and text.startswith("Forbidden: ") and "read-only" in text, what
    after = guarded.call("GET", f"/collections/{COLLECTION}", headers={"api-key": "writer-1"}).result
    assert after == before


@pytest.mark.parametrize("key", ["writer", "writer-11", "WRITER-1", "reader-2"])
def test_a_wrong_key_may_do_nothing(connect, key):
    client = connect(key)
    for what, call in (READS | WRITES).items():
        assert code_of(lambda: call(client)) == (401, "Invalid API key or JWT"), what


def test_without_a_key_nothing_is_done(connect):
    client = connect(None)
    for what, call in (READS | WRITES).items():
        code, text = code_of(lambda: call(client))
        assert code == 401 and text.startswith("Must provide an API key"), what


def test_a_key_may_come_as_a_bearer_token(guarded):
    reply = guarded.call("GET", "/collections", headers={"Authorization": "Bearer reader-1"})
    assert reply.result["collections"] == [{"name": COLLECTION}]
    with grpc.insecure_channel(f"127.0.0.1:{guarded.grpc_port}") as channel:
        ask = channel.unary_unary("/qdrant.Collections/List")
        assert COLLECTION.encode() in ask(b"", metadata=[("authorization", "Bearer reader-1")])
        with pytest.raises(grpc.RpcError) as refused:
            ask(b"", metadata=[("authorization", "Basic reader-1")])
        assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED


def test_probes_and_the_page_need_no_key_and_tell_nothing_of_the_data(guarded):
    """Field report S4."""
    for path in ("/", "/healthz", "/livez", "/readyz", "/readyz/", "/dashboard", "/dashboard/x"):
        reply = guarded.call("GET", path)
        assert reply.status == 200, path
        assert not any(key in reply.text for key in KEYS.values())
    assert "needed" in guarded.call("GET", "/dashboard").text
    for path in ("/metrics", "/nope", "/collections/healthz", "/telemetry"):
        assert guarded.call("GET", path).status == 401, path
    assert guarded.call("POST", "/dashboard").status == 401
    with grpc.insecure_channel(f"127.0.0.1:{guarded.grpc_port}") as channel:
        assert channel.unary_unary("/grpc.health.v1.Health/Check")(b"") == b"\x08\x01"
        assert b"1.19.0" in channel.unary_unary("/qdrant.Qdrant/HealthCheck")(b"")


def test_a_refusal_may_be_read_by_a_page_of_another_origin(guarded):
    headers = {"Origin": "http://elsewhere"}
    reply = guarded.call("GET", "/collections", headers=headers)
    assert reply.status == 401 and reply.headers["access-control-allow-origin"] == "*"
    asking = headers | {
        "Access-Control-Request-Method": "PUT",
        "Access-Control-Request-Headers": "authorization,api-key,content-type",
    }
    reply = guarded.call("OPTIONS", "/collections/c", headers=asking)
    assert reply.status == 200
    assert "authorization" in reply.headers["access-control-allow-headers"]
