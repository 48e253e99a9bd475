//! The durable state of a segment of either kind: recorded from a view, opened after a restart,
//! verified on demand.

use std::sync::Arc;

use uuid::Uuid;

use crate::dir::Directory;
use crate::error::SegmentError;
use crate::growing::checkpoint::{self, Links};
use crate::growing::write::SegmentWriter;
use crate::parts::spec::SegmentSpec;
use crate::sealed;
use crate::view::SegmentView;

/// Makes a view durable. Called by one thread at a time for a segment, after the log was synced up to
/// the view's watermark. Nothing is written if nothing has changed since the last call.
///
/// # Errors
/// [`SegmentError::Dir`]; what was recorded before stays valid then.
///
/// Blocks: syncs what was appended since the last call.
pub fn record(view: &SegmentView) -> Result<(), SegmentError> {
    if view.segment().is_sealed() {
        sealed::state::record(view)
    } else {
        checkpoint::record(view)
    }
}

/// Opens the segment in `dir` as it was recorded.
///
/// # Errors
/// [`SegmentError::Corrupt`] with file and offset where bytes do not check, [`SegmentError::Dir`] for
/// missing files.
///
/// Blocks: a growing segment is read once, to verify it; of a sealed one heads and ids are.
pub fn recover(
    dir: Arc<dyn Directory>,
    id: Uuid,
    spec: Arc<SegmentSpec>,
) -> Result<SegmentWriter, SegmentError> {
    if sealed::is_sealed_dir(dir.as_ref())? {
        sealed::open::open(dir, id, spec)
    } else {
        checkpoint::recover(dir, id, spec, Links::Restore)
    }
}

/// Reads every byte of the segment in `dir` that counts and lists what does not check; changes
/// nothing. `visit` is called with each damage.
///
/// Blocks: for a read of the whole segment.
pub fn verify(
    dir: &Arc<dyn Directory>,
    id: Uuid,
    spec: &Arc<SegmentSpec>,
    visit: &mut dyn FnMut(SegmentError),
) {
    let opened = sealed::is_sealed_dir(dir.as_ref()).and_then(|is_sealed| {
        if is_sealed {
            sealed::open::open(Arc::clone(dir), id, Arc::clone(spec))
        } else {
            crate::growing::links::verify(dir, spec, visit);
            checkpoint::recover(Arc::clone(dir), id, Arc::clone(spec), Links::Leave)
        }
    });
    match opened {
        Ok(mut writer) => {
            let seq = writer.segment().recorded_seq();
            sealed::verify::verify(&writer.view(seq), visit);
        }
        Err(error) => visit(error),
    }
}
