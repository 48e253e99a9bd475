//! Reading the log at open: which records count, and what to do with bytes that do not check.
//!
//! 1. The headers of all files are read. A file's records count up to the first number of any later file.
//! 2. The files are read in order, in blocks; each record must have the number after the last one.
//! 3. Where a file ends, or its bytes stop to check, the next file decides: if it starts with the number
//!    that is due, nothing is lost, and what stands behind is stale.
//! 4. Otherwise records are lost from the number that is due. If anything claims that this number was synced (a
//!    later valid record or header, or the caller), the log is corrupt. If nothing does, those records were
//!    never acknowledged as durable: later files are removed and the file is cut at its first
//!    bad byte.
//! 5. All that is left is made durable, files and directory. A file with records that nothing claims as synced is
//!    written anew: the process before may have seen a sync fail, after which its pages pass for written though
//!    they are not on the disk (Rebello et al., ATC 2020).

use flatwater_segment::SeqNo;
use flatwater_segment::dir::{DirError, Directory};

use super::record::{
    self, BODY_BYTES_MAX, FILE_HEADER_BYTES, FileHeader, RECORD_HEADER_BYTES, RecordHeader,
};
use super::sync::LogFile;
use super::{WalOptions, generation_of};
use crate::error::{EngineError, Result};

/// Bytes read at a time; a larger record is read as a whole.
const BLOCK_BYTES: u64 = 1 << 20;

/// Takes each replayed record: its number and body.
pub type Visit<'a> = dyn FnMut(SeqNo, &[u8]) -> Result<()> + 'a;

/// What a replay found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// Number of the last record (visited or not); what the caller's checkpoints hold when there is none.
    pub last_seq: SeqNo,
    /// How many records were visited.
    pub visited: u64,
    /// The torn tail that was cut off, for a warning and a count.
    pub cut: Option<Cut>,
}

/// A torn tail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Name of the first file cut.
    pub file: String,
    /// Where the cut is.
    pub offset: u64,
    /// How many bytes went, later files included.
    pub bytes: u64,
    /// What did not check.
    pub detail: String,
}

/// What the log goes on from.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) files: Vec<LogFile>,
    pub(super) next_seq: SeqNo,
    pub(super) next_generation: u64,
}

/// A file as it stands on the disk.
#[derive(Debug)]
struct OldFile {
    name: String,
    generation: u64,
    len: u64,
    header: Option<FileHeader>,
}

/// Where records stop to check.
#[derive(Debug)]
struct Break {
    /// Index of the file.
    file: usize,
    offset: u64,
    detail: String,
}

/// What reading all files found, before anything is changed.
struct Scan {
    files: Vec<OldFile>,
    next_seq: SeqNo,
    visited: u64,
    /// Up to where anything that was read says that all was synced.
    claimed: SeqNo,
    broken: Option<Break>,
}

/// Reads the log as an opening would, and changes nothing. `visit` gets each record past the floor.
/// Answers how many there were; a torn tail that an opening would cut off is no damage.
pub(super) fn check(
    dir: &dyn Directory,
    options: WalOptions,
    visit: &mut Visit<'_>,
) -> Result<u64> {
    Ok(scan(dir, options, visit)?.visited)
}

/// Steps 1 to 3, and the refusal of step 4.
fn scan(dir: &dyn Directory, options: WalOptions, visit: &mut Visit<'_>) -> Result<Scan> {
    let files = old_files(dir)?;
    let floor = options.floor;
    let mut walk = Walk {
        dir,
        files: &files,
        floor,
        visit,
        due: None,
        visited: 0,
        claimed: options.synced,
        broken: None,
    };
    walk.read_all()?;
    let (due, visited, broken) = (walk.due, walk.visited, walk.broken);
    let claimed = walk.claimed;
    let next_seq = due.unwrap_or(options.floor + 1);
    if let Some(broken) = &broken {
        refuse_if_synced(dir, &files, broken, next_seq, options.synced)?;
    } else if next_seq <= options.synced {
        let synced = options.synced;
        let detail = format!("the log ends before {next_seq}, checkpoints hold up to {synced}");
        let (file, offset) = match files.last() {
            Some(last) => (last.path(dir), last.len),
            None => (dir.path().display().to_string(), 0),
        };
        return Err(EngineError::Corrupt {
            file,
            offset,
            detail,
        });
    }
    Ok(Scan {
        files,
        next_seq,
        visited,
        claimed,
        broken,
    })
}

/// Replays, cuts, syncs.
pub(super) fn replay(
    dir: &dyn Directory,
    options: WalOptions,
    visit: &mut Visit<'_>,
) -> Result<(Found, Replayed)> {
    let Scan {
        mut files,
        next_seq,
        visited,
        claimed,
        broken,
    } = scan(dir, options, visit)?;
    let next_generation = files.last().map_or(1, |file| file.generation + 1);
    let cut = match broken {
        Some(broken) => Some(cut_off(dir, &mut files, broken)?),
        None => None,
    };
    let mut kept = Vec::new();
    for (index, file) in files.iter().enumerate() {
        if let Some(header) = file.header {
            let later = files.iter().skip(index + 1).find_map(|file| file.header);
            let end = later.map_or(next_seq, |header| header.first_seq);
            make_durable(dir, &file.name, end - 1 <= claimed)?;
            kept.push(LogFile::from(header));
        } else {
            // Begun and never finished: no number is missing without it.
            dir.remove(&file.name)?;
        }
    }
    dir.sync()?;
    let files = kept;
    let found = Found {
        files,
        next_seq,
        next_generation,
    };
    Ok((
        found,
        Replayed {
            last_seq: next_seq - 1,
            visited,
            cut,
        },
    ))
}

/// Makes a file durable, whether or not a sync of it has failed before.
fn make_durable(dir: &dyn Directory, name: &str, is_claimed: bool) -> Result<()> {
    if !is_claimed {
        // One log file in memory.
        let bytes = dir.read(name)?;
        match dir.write_atomic(name, &bytes) {
            // No worse than it was, as long as no sync has failed.
            Err(error @ DirError::DiskFull { .. }) => {
                tracing::warn!(%error, "the log is kept as it stands");
            }
            other => return Ok(other?),
        }
    }
    Ok(dir.open_append(name)?.syncer().sync()?)
}

/// The log files, by generation.
fn old_files(dir: &dyn Directory) -> Result<Vec<OldFile>> {
    let mut files = Vec::new();
    for name in dir.list()? {
        let Some(generation) = generation_of(&name) else {
            continue;
        };
        let len = dir.open_append(&name)?.len();
        let start = dir.read_range(&name, 0..FILE_HEADER_BYTES as u64)?;
        let mut file = OldFile {
            name,
            generation,
            len,
            header: None,
        };
        file.header = FileHeader::decode(generation, &start).map_err(|version| {
            let detail = format!("format version {version} is not one that this release reads");
            EngineError::Corrupt {
                file: file.path(dir),
                offset: 8,
                detail,
            }
        })?;
        files.push(file);
    }
    files.sort_unstable_by_key(|file| file.generation);
    Ok(files)
}

impl OldFile {
    /// Its path, for messages.
    fn path(&self, dir: &dyn Directory) -> String {
        dir.path().join(&self.name).display().to_string()
    }
}

/// The reading of all files in order.
struct Walk<'a, 'v> {
    dir: &'a dyn Directory,
    files: &'a [OldFile],
    floor: SeqNo,
    visit: &'a mut Visit<'v>,
    /// The number that is due next; `None` before the first file that can be read.
    due: Option<SeqNo>,
    visited: u64,
    /// Up to where anything that was read says that all was synced.
    claimed: SeqNo,
    /// Where records are missing or do not check, if no later file has made up for it.
    broken: Option<Break>,
}

impl Walk<'_, '_> {
    fn read_all(&mut self) -> Result<()> {
        let files = self.files;
        for (index, file) in files.iter().enumerate() {
            let Some(header) = file.header else {
                self.broken_at(index, 0, "the file header does not check".to_owned());
                continue;
            };
            // Before the first file, anything from just past the floor on will do.
            let due = self
                .due
                .unwrap_or_else(|| header.first_seq.min(self.floor + 1));
            let detail = format!(
                "the file starts with record {}, {due} is due",
                header.first_seq
            );
            if header.first_seq > due {
                self.broken_at(index, 0, detail);
                return Ok(());
            }
            if header.first_seq < due {
                return Err(EngineError::Corrupt {
                    file: file.path(self.dir),
                    offset: 0,
                    detail,
                });
            }
            self.broken = None;
            self.claimed = self.claimed.max(header.synced_seq);
            let later = files.iter().skip(index + 1).filter_map(|file| file.header);
            let limit = later
                .map(|header| header.first_seq)
                .min()
                .unwrap_or(SeqNo::MAX);
            self.read_file(index, file, due, limit)?;
        }
        Ok(())
    }

    /// Notes the first break since the last record that counted.
    fn broken_at(&mut self, file: usize, offset: u64, detail: String) {
        self.broken.get_or_insert(Break {
            file,
            offset,
            detail,
        });
    }

    /// Visits the records of one file from number `due` on that lie below `limit`.
    fn read_file(&mut self, index: usize, file: &OldFile, due: SeqNo, limit: SeqNo) -> Result<()> {
        let mut window = Window {
            dir: self.dir,
            file,
            start: 0,
            bytes: Vec::new(),
        };
        let (mut at, mut due) = (FILE_HEADER_BYTES as u64, due);
        while due < limit && at < file.len {
            let (header, body) = match window.record(at)? {
                Ok(record) => record,
                Err(detail) => {
                    self.broken_at(index, at, detail);
                    break;
                }
            };
            if header.seq != due {
                let detail = format!("record {} stands where {due} is due", header.seq);
                return Err(EngineError::Corrupt {
                    file: file.path(self.dir),
                    offset: at,
                    detail,
                });
            }
            if header.seq > self.floor {
                (self.visit)(header.seq, body)?;
                self.visited += 1;
            }
            self.claimed = self.claimed.max(header.synced_seq);
            due += 1;
            at += header.record_bytes();
        }
        self.due = Some(due);
        Ok(())
    }
}

/// A block of a file, moved along as records are asked for.
struct Window<'a> {
    dir: &'a dyn Directory,
    file: &'a OldFile,
    start: u64,
    bytes: Vec<u8>,
}

impl Window<'_> {
    /// The checked record at an offset, or what does not check.
    fn record(&mut self, at: u64) -> Result<std::result::Result<(RecordHeader, &[u8]), String>> {
        let left = self.file.len - at;
        let Some(header) = RecordHeader::decode(self.get(at, RECORD_HEADER_BYTES as u64)?) else {
            return Ok(Err(format!(
                "a record header needs {RECORD_HEADER_BYTES} bytes, {left} are left"
            )));
        };
        if header.len > BODY_BYTES_MAX || header.record_bytes() > left {
            let bytes = header.record_bytes();
            return Ok(Err(format!("a record of {bytes} bytes, {left} are left")));
        }
        let generation = self.file.generation;
        let record = self.get(at, header.record_bytes())?;
        let body = record.get(RECORD_HEADER_BYTES..).unwrap_or_default();
        let (expected, found) = (header.crc, header.checksum(generation, body));
        Ok(if expected == found {
            Ok((header, body))
        } else {
            Err(format!(
                "record checksum: expected {expected:#010x}, found {found:#010x}"
            ))
        })
    }

    /// `len` bytes at an offset, fewer at the end of the file.
    fn get(&mut self, at: u64, len: u64) -> Result<&[u8]> {
        let end = self.start + self.bytes.len() as u64;
        if at < self.start || at + len > end {
            self.bytes = self
                .dir
                .read_range(&self.file.name, at..at + len.max(BLOCK_BYTES))?;
            self.start = at;
        }
        // A block and a record fit in memory, so the offset in it is a usize.
        let from = (at - self.start) as usize;
        let to = from.saturating_add(len as usize).min(self.bytes.len());
        Ok(self.bytes.get(from..to).unwrap_or_default())
    }
}

/// `Corrupt` when anything claims that the record `lost` was synced: the caller, or a header or record behind
/// the break.
fn refuse_if_synced(
    dir: &dyn Directory,
    files: &[OldFile],
    broken: &Break,
    lost: SeqNo,
    synced: SeqNo,
) -> Result<()> {
    let behind = files.get(broken.file..).unwrap_or_default();
    let claim = if lost <= synced {
        Some(format!("checkpoints hold up to {synced}"))
    } else {
        let bytes: u64 = behind.iter().map(|file| file.len).sum();
        // So many records would fit behind the break.
        let seq_max = lost + bytes / RECORD_HEADER_BYTES as u64;
        let mut from = broken.offset;
        let mut claim = None;
        for file in behind {
            claim = claim_in(dir, file, std::mem::take(&mut from), lost, seq_max)?;
            if claim.is_some() {
                break;
            }
        }
        claim
    };
    let Some(claim) = claim else { return Ok(()) };
    let file = behind
        .first()
        .map_or_else(String::new, |file| file.path(dir));
    let detail = format!(
        "{}; records from {lost} on had been synced: {claim}",
        broken.detail
    );
    Err(EngineError::Corrupt {
        file,
        offset: broken.offset,
        detail,
    })
}

/// What in a file, from an offset on, claims that `lost` was synced.
fn claim_in(
    dir: &dyn Directory,
    file: &OldFile,
    from: u64,
    lost: SeqNo,
    seq_max: SeqNo,
) -> Result<Option<String>> {
    if file.header.is_some_and(|header| header.synced_seq >= lost) {
        return Ok(Some(format!("the header of {} says so", file.name)));
    }
    // One log file in memory, on this path alone.
    let bytes = dir.read_range(&file.name, from..file.len)?;
    let found = record::find_claim(&bytes, file.generation, lost, seq_max);
    Ok(found.map(|at| {
        format!(
            "the record at byte {} of {} says so",
            from + at as u64,
            file.name
        )
    }))
}

/// Cuts the log at a break. Later files go first, durably: with the torn file still torn, a crash in between is
/// met again as the same break.
fn cut_off(dir: &dyn Directory, files: &mut Vec<OldFile>, broken: Break) -> Result<Cut> {
    let Break {
        file: index,
        offset,
        detail,
    } = broken;
    let name = files
        .get(index)
        .map_or_else(String::new, |file| file.name.clone());
    let mut bytes: u64 = files.iter().skip(index).map(|file| file.len).sum();
    let stays = offset >= FILE_HEADER_BYTES as u64;
    for file in files.drain(index + usize::from(stays)..).rev() {
        dir.remove(&file.name)?;
    }
    dir.sync()?;
    if let Some(torn) = files.last_mut().filter(|_| stays) {
        bytes -= offset;
        let mut file = dir.open_append(&torn.name)?;
        file.truncate(offset)?;
        file.syncer().sync()?;
        torn.len = offset;
    }
    Ok(Cut {
        file: name,
        offset,
        bytes,
        detail,
    })
}
