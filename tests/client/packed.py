"""Vectors over gRPC as packed bytes, without a Python float for each number: how tests fill
collections whose way of arrival is not what they are about."""

import grpc
from qdrant_client import grpc as wire
from qdrant_client.conversions.conversion import payload_to_grpc

UNLIMITED = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
BATCH = 500


def channel(server):
    """A channel to the server without limits on the side of the client."""
    return grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}", options=UNLIMITED)


def varint(number):
    """A number as protobuf writes it."""
    out = []
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def vectors(row, name=None):
    """One vector, an array of f32: field 1 of a DenseVector is the packed floats."""
    data = row.astype("<f4", copy=False).tobytes()
    dense = wire.DenseVector.FromString(b"\x0a" + varint(len(data)) + data)
    vector = wire.Vector(dense=dense)
    if name is None:
        return wire.Vectors(vector=vector)
    return wire.Vectors(vectors=wire.NamedVectors(vectors={name: vector}))


def upload(server, collection, rows, payloads=None, ids=None, name=None, wait=True):
    """Stores the rows, under their numbers if there are no ids."""
    ids = range(len(rows)) if ids is None else ids
    with channel(server) as opened:
        stub = wire.PointsStub(opened)
        for begin in range(0, len(rows), BATCH):
            points = [
                wire.PointStruct(
                    id=wire.PointId(num=ids[at]),
                    vectors=vectors(rows[at], name),
                    payload=payload_to_grpc(payloads[at]) if payloads else None,
                )
                for at in range(begin, min(begin + BATCH, len(rows)))
            ]
            request = wire.UpsertPoints(collection_name=collection, wait=wait, points=points)
            stub.Upsert(request, timeout=60)
