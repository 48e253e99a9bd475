//! Faults that tonic finds before a service sees the message, in our words and with our codes.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use flatwater_api::error::ApiError;
use tonic::{Code, Status};

use super::status::response;

/// Beginnings of tonic's texts, with their codes.
const TOO_LARGE: (Code, &str) = (Code::OutOfRange, "Error, decoded message length too large");
const TOO_LARGE_COMPRESSED: (Code, &str) =
    (Code::ResourceExhausted, "Error decompressing: size limit");
const UNDECODABLE: (Code, &str) = (Code::Internal, "failed to decode Protobuf message");

/// Answers a message over the limit with the name of the option that sets it, and bytes that are no
/// message as the fault of the sender, which tonic calls an internal one.
pub(super) async fn retell(
    State(limit_mb): State<usize>,
    request: Request,
    next: Next,
) -> Response {
    let answer = next.run(request).await;
    let Some(status) = Status::from_header_map(answer.headers()) else {
        return answer;
    };
    let is =
        |(code, text): (Code, &str)| status.code() == code && status.message().starts_with(text);
    if is(TOO_LARGE) || is(TOO_LARGE_COMPRESSED) {
        return response(&ApiError::BodyTooLarge {
            limit_mb,
            option: "service.max_grpc_message_size_mb",
        });
    }
    if is(UNDECODABLE) {
        return response(&ApiError::Format(status.message().to_owned()));
    }
    answer
}
