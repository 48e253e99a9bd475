//! Mapped files: stores go to memory without a call, so the durable bytes are a copy by pages.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use memmap2::{MmapMut, MmapRaw};
use parking_lot::Mutex;

use super::faults::{Faults, Operation};
use super::image::Choice;
use crate::dir::{DirError, Region, Result};

/// What a power loss keeps or drops as a whole.
const PAGE_BYTES: usize = 4096;

type Page = Box<[u8]>;

/// A region and the bytes of it that are durable.
#[derive(Debug)]
pub(super) struct FaultRegion {
    faults: Arc<Faults>,
    path: PathBuf,
    map: MmapRaw,
    pages: Mutex<Pages>,
}

#[derive(Clone, Debug, Default)]
struct Pages {
    /// Durable pages by number; a missing one is zeros.
    durable: BTreeMap<usize, Page>,
    /// Parts of pages that a failed sync should have written: where they begin in the page, and how they stood.
    /// As long as they stand so, a later sync does not write them.
    lost: BTreeMap<usize, (usize, Page)>,
}

impl FaultRegion {
    pub(super) fn create(faults: &Arc<Faults>, path: PathBuf, len_bytes: u64) -> Result<Self> {
        let mapped = usize::try_from(len_bytes)
            .map_err(io::Error::other)
            .and_then(MmapMut::map_anon);
        let map = mapped.map_err(|e| DirError::from_io("creating", &path, len_bytes, e))?;
        Ok(Self {
            faults: Arc::clone(faults),
            path,
            map: map.into(),
            pages: Mutex::default(),
        })
    }

    /// Bytes of the live image.
    fn copy(&self, range: Range<usize>) -> Page {
        assert!(
            range.start <= range.end && range.end <= self.map.len(),
            "a copy lies inside its region"
        );
        let mut bytes = vec![0; range.len()];
        let source = self.map.as_ptr().wrapping_add(range.start);
        // SAFETY: the range is mapped and lives as long as `self` (checked above). Bytes that are synced were
        // published and are not stored to; images are taken when nobody stores any more.
        unsafe { source.copy_to_nonoverlapping(bytes.as_mut_ptr(), bytes.len()) };
        bytes.into()
    }

    /// Stores bytes into a region that nobody else has yet.
    fn fill(&self, at: usize, bytes: &[u8]) {
        assert!(
            at <= self.map.len() && bytes.len() <= self.map.len() - at,
            "a page lies inside its region"
        );
        let target = self.map.as_mut_ptr().wrapping_add(at);
        // SAFETY: the range is mapped (checked above), writable, and no reference to it exists.
        unsafe { target.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    /// A new process opens it: it stores anew what it relies on, so that no page passes for written any more.
    pub(super) fn reopened(self: Arc<Self>) -> Arc<Self> {
        self.pages.lock().lost.clear();
        self
    }

    /// The ranges of whole pages that cover the region.
    fn page_ranges(&self) -> impl Iterator<Item = (usize, Range<usize>)> + use<> {
        let len = self.map.len();
        (0..len.div_ceil(PAGE_BYTES)).map(move |page| {
            let start = page * PAGE_BYTES;
            (page, start..(start + PAGE_BYTES).min(len))
        })
    }

    pub(super) fn after_kill(&self, faults: &Arc<Faults>) -> Result<Self> {
        let image = Self::create(faults, self.path.clone(), self.len())?;
        for (_, range) in self.page_ranges() {
            let live = self.copy(range.clone());
            if live.iter().any(|&byte| byte != 0) {
                image.fill(range.start, &live);
            }
        }
        let durable = self.pages.lock().durable.clone();
        image.pages.lock().durable = durable;
        Ok(image)
    }

    pub(super) fn after_power_loss(
        &self,
        faults: &Arc<Faults>,
        choice: &mut Choice,
    ) -> Result<Self> {
        let image = Self::create(faults, self.path.clone(), self.len())?;
        let pages = self.pages.lock();
        let mut kept = BTreeMap::new();
        for (number, range) in self.page_ranges() {
            let mut page = pages
                .durable
                .get(&number)
                .cloned()
                .unwrap_or_else(|| vec![0; range.len()].into());
            let live = self.copy(range.clone());
            let was_lost = pages.lost.contains_key(&number);
            if live != page && !was_lost && choice.keeps() {
                page = live;
            }
            if page.iter().any(|&byte| byte != 0) {
                image.fill(range.start, &page);
                kept.insert(number, page);
            }
        }
        drop(pages);
        image.pages.lock().durable = kept;
        Ok(image)
    }

    /// The parts of pages that a range of bytes covers: page, range in the region.
    fn parts(&self, range: Range<u64>) -> Vec<(usize, Range<usize>)> {
        let len = self.map.len();
        let clamp = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(len);
        let (start, end) = (clamp(range.start), clamp(range.end));
        let pages = start / PAGE_BYTES..end.div_ceil(PAGE_BYTES).max(start / PAGE_BYTES);
        pages
            .map(|page| {
                let first = page * PAGE_BYTES;
                (page, first.max(start)..(first + PAGE_BYTES).min(end))
            })
            .filter(|(_, part)| !part.is_empty())
            .collect()
    }
}

impl Region for FaultRegion {
    fn len(&self) -> u64 {
        self.map.len() as u64
    }

    fn as_ptr(&self) -> *mut u8 {
        self.map.as_mut_ptr()
    }

    fn sync(&self, range: Range<u64>) -> Result<()> {
        let parts = self.parts(range);
        if parts.is_empty() {
            return Ok(());
        }
        let outcome = self.faults.sync(Operation::SyncRegion, &self.path);
        if let Err(failure) = &outcome
            && !failure.loses()
        {
            return Ok(outcome?);
        }
        let mut pages = self.pages.lock();
        for (page, part) in parts {
            let first = page * PAGE_BYTES;
            let bytes = self.copy(part.clone());
            if outcome.is_err() {
                pages.lost.insert(page, (part.start - first, bytes));
                continue;
            }
            if let Some((at, stood)) = pages.lost.get(&page) {
                let lost = first + at..first + at + stood.len();
                let is_inside = lost.start <= part.start && part.end <= lost.end;
                if is_inside && self.copy(lost) == *stood {
                    // Clean to the kernel since the sync that failed.
                    continue;
                }
            }
            let size = PAGE_BYTES.min(self.map.len() - first);
            let rewritten = pages.lost.remove(&page);
            let stored = pages
                .durable
                .entry(page)
                .or_insert_with(|| vec![0; size].into());
            let mut put = |at: usize, bytes: &[u8]| {
                if let Some(target) = stored.get_mut(at..at + bytes.len()) {
                    target.copy_from_slice(bytes);
                }
            };
            if let Some((at, stood)) = rewritten {
                put(at, &self.copy(first + at..first + at + stood.len()));
            }
            put(part.start - first, &bytes);
        }
        Ok(outcome?)
    }
}
