//! What a segment takes of the disk.

use crate::error::SegmentError;
use crate::parts::Segment;

impl Segment {
    /// Bytes of its files; 0 once it was replaced and they are gone.
    ///
    /// # Errors
    /// [`SegmentError::Dir`].
    pub fn disk_bytes(&self) -> Result<u64, SegmentError> {
        match self.dir.sizes() {
            Ok(files) => Ok(files.iter().map(|(_, bytes)| bytes).sum()),
            Err(error) if error.is_not_found() => Ok(0),
            Err(error) => Err(error.into()),
        }
    }
}
