//! Paths of our own, below `/ext/`.

use flatwater_api::convert::segments;
use flatwater_api::error::Result;
use flatwater_engine::clock;

use super::input::Input;
use crate::app::{Shared, blocking, find};

/// `GET /ext/collections/{collection_name}/segments`.
pub(super) async fn segments(app: Shared, input: Input) -> Result<Vec<u8>> {
    let engine = app.engine()?;
    let name = input.part(0);
    blocking(move || {
        let list = find(&engine, &name)?.segments()?;
        Ok(segments::encode_segments(&list, clock::unix_ms()))
    })
    .await
}
