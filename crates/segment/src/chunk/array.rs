//! Rows of one width: shared readers and their one writer.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytemuck::Pod;
use parking_lot::Mutex;

use super::memory::Table;
use super::schedule::Schedule;
use crate::dir::{Directory, Result};
use crate::file::Damage;

/// Rows `[T; width]`, append-only, readable from any thread.
///
/// A row starts at a multiple of 64 bytes when its size is one, else of 16 when its size is one.
/// Blocks: never, but for [`Self::sync`], [`Self::checksum`] and [`Self::verify`].
pub struct ChunkArray<T> {
    table: Table,
    schedule: Schedule,
    width: usize,
    published: AtomicU32,
    /// The longest prefix whose checksum is known.
    checksum: Mutex<Checksum>,
    values: PhantomData<T>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Checksum {
    rows: u32,
    crc: u32,
}

impl<T> fmt::Debug for ChunkArray<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChunkArray")
            .field("width", &self.width)
            .field("published", &self.published)
            .finish_non_exhaustive()
    }
}

impl<T: Pod> ChunkArray<T> {
    fn new(dir: Arc<dyn Directory>, prefix: &str, width: usize, rows: u32) -> Self {
        let row_bytes = width
            .checked_mul(size_of::<T>())
            .expect("a row is smaller than memory");
        Self {
            table: Table::new(dir, prefix),
            schedule: Schedule::new(row_bytes as u64),
            width,
            published: AtomicU32::new(rows),
            checksum: Mutex::default(),
            values: PhantomData,
        }
    }

    /// How many rows are published. A later call never answers less.
    #[inline]
    #[must_use]
    pub fn len(&self) -> u32 {
        self.published.load(Ordering::Acquire)
    }

    /// Whether no row is published.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the rows, and of the room behind them, that are in memory now.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        self.table.resident_bytes()
    }

    /// Values in a row.
    #[inline]
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    #[inline]
    fn row_bytes(&self) -> usize {
        self.width * size_of::<T>()
    }

    /// Row `row`.
    ///
    /// # Panics
    /// When the row is not published.
    #[inline]
    #[must_use]
    pub fn row(&self, row: u32) -> &[T] {
        assert!(row < self.len(), "a row is read after it was published");
        let (chunk, within) = self.schedule.locate(row);
        let chunk = self
            .table
            .get(chunk)
            .expect("published rows lie in mapped chunks");
        // SAFETY: the row lies below a length loaded with Acquire, and the writer stores only to
        // rows past the length it has published.
        unsafe { chunk.slice(within as usize * self.row_bytes(), self.width) }
    }

    /// Asks the CPU to fetch a row that will be read soon. Any number will do.
    #[inline]
    pub fn prefetch(&self, row: u32) {
        let (chunk, within) = self.schedule.locate(row);
        if let Some(chunk) = self.table.get(chunk) {
            chunk.prefetch(within as usize * self.row_bytes(), self.row_bytes());
        }
    }

    /// The published rows from `row` on that lie next to it in memory, and their count; none when
    /// `row` is not published.
    ///
    /// Shapes: `[rows, width]` row-major.
    #[inline]
    #[must_use]
    pub fn run(&self, row: u32) -> (&[T], u32) {
        let len = self.len();
        if row >= len {
            return (&[], 0);
        }
        let (index, within) = self.schedule.locate(row);
        let in_chunk = self.schedule.rows_in(index) - u64::from(within);
        let rows = (len - row).min(u32::try_from(in_chunk).unwrap_or(u32::MAX));
        let chunk = self
            .table
            .get(index)
            .expect("published rows lie in mapped chunks");
        // SAFETY: all these rows lie below a length loaded with Acquire, as in `row`.
        let values = unsafe {
            chunk.slice(
                within as usize * self.row_bytes(),
                rows as usize * self.width,
            )
        };
        (values, rows)
    }

    /// Makes the published ones of the rows `[from_row, to_row)` durable, with the entries of their files.
    ///
    /// Blocks: one `msync` a chunk touched, one directory sync if chunks were added.
    ///
    /// # Errors
    /// `Io`: it is not known what is durable.
    pub fn sync(&self, from_row: u32, to_row: u32) -> Result<()> {
        let to_row = to_row.min(self.len());
        let mut row = from_row;
        while row < to_row {
            let (index, within) = self.schedule.locate(row);
            let in_chunk = self.schedule.rows_in(index) - u64::from(within);
            let rows = u64::from(to_row - row).min(in_chunk);
            let chunk = self
                .table
                .get(index)
                .expect("published rows lie in mapped chunks");
            let row_bytes = self.row_bytes() as u64;
            let start = u64::from(within) * row_bytes;
            chunk.region().sync(start..start + rows * row_bytes)?;
            // `rows` is at most `to_row - row`, a u32.
            row += rows as u32;
        }
        self.table.sync_entries()
    }

    /// crc32c of the rows `[0, upto)` as they lie in memory.
    ///
    /// Cost: the rows since the longest prefix asked for before; a shorter prefix is computed anew.
    ///
    /// # Panics
    /// When `upto` is past the published rows.
    #[must_use]
    pub fn checksum(&self, upto: u32) -> u32 {
        assert!(upto <= self.len(), "a checksum covers published rows");
        let mut known = self.checksum.lock();
        if upto < known.rows {
            return self.extend(Checksum::default(), upto).crc;
        }
        *known = self.extend(*known, upto);
        known.crc
    }

    fn extend(&self, mut sum: Checksum, upto: u32) -> Checksum {
        while sum.rows < upto {
            let (values, rows) = self.run(sum.rows);
            let rows = rows.min(upto - sum.rows);
            let covered = &values[..rows as usize * self.width];
            sum.crc = crc32c::crc32c_append(sum.crc, bytemuck::cast_slice(covered));
            sum.rows += rows;
        }
        sum
    }

    /// Checks the rows `[0, upto)` against the checksum that a checkpoint recorded.
    ///
    /// # Errors
    /// `Damaged`, naming the last chunk of the prefix.
    ///
    /// # Panics
    /// When `upto` is past the published rows.
    pub fn verify(&self, upto: u32, expected: u32) -> Result<()> {
        let found = self.checksum(upto);
        if found == expected {
            return Ok(());
        }
        let offset = u64::from(upto) * self.row_bytes() as u64;
        let (expected, found) = (expected.into(), found.into());
        let damage = Damage {
            check: "checksum of the rows",
            offset,
            expected,
            found,
        };
        Err(self
            .table
            .damaged(self.schedule.locate(upto.saturating_sub(1)).0, damage))
    }
}

/// The one writer of a [`ChunkArray`].
#[derive(Debug)]
pub struct ChunkWriter<T> {
    array: Arc<ChunkArray<T>>,
    /// Rows stored; those from the published length on are not visible yet.
    pushed: u32,
    /// Rows that the mapped chunks can hold.
    capacity: u64,
}

impl<T: Pod> ChunkWriter<T> {
    /// Starts an empty array of rows of `width` values (at least 1) in the files
    /// `<prefix>-<nnnnn>.chunk`. Creates no file before the first [`Self::reserve`].
    #[must_use]
    pub fn create(dir: Arc<dyn Directory>, prefix: &str, width: usize) -> Self {
        Self {
            array: Arc::new(ChunkArray::new(dir, prefix, width, 0)),
            pushed: 0,
            capacity: 0,
        }
    }

    /// Opens an array with `rows` published rows; later rows, if any were stored, are written anew.
    /// At most one writer may exist for the files.
    ///
    /// # Errors
    /// `Io` when a chunk is missing, `Damaged` when one is shorter than its rows.
    pub fn open(dir: Arc<dyn Directory>, prefix: &str, width: usize, rows: u32) -> Result<Self> {
        let array = ChunkArray::new(dir, prefix, width, rows);
        let (mut capacity, mut index) = (0, 0);
        while capacity < u64::from(rows) {
            let rows_in = array.schedule.rows_in(index);
            array
                .table
                .open(index, rows_in * array.row_bytes() as u64)?;
            capacity += rows_in;
            index += 1;
        }
        Ok(Self {
            array: Arc::new(array),
            pushed: rows,
            capacity,
        })
    }

    /// The readers' side.
    #[must_use]
    pub fn array(&self) -> Arc<ChunkArray<T>> {
        Arc::clone(&self.array)
    }

    /// Rows stored, published or not.
    #[must_use]
    pub fn pushed(&self) -> u32 {
        self.pushed
    }

    /// Makes sure that the next `rows` pushes cannot fail.
    ///
    /// Blocks: creates files; no sync.
    ///
    /// # Errors
    /// `DiskFull`, `Io`: nothing has changed then.
    ///
    /// # Panics
    /// When the rows would number more than `u32::MAX`; segments are sealed long before.
    pub fn reserve(&mut self, rows: u32) -> Result<()> {
        let needed = u64::from(self.pushed) + u64::from(rows);
        assert!(
            needed <= u64::from(u32::MAX),
            "a segment numbers its rows by u32"
        );
        let schedule = self.array.schedule;
        let (mut capacity, mut wanted) = (self.capacity, Vec::new());
        while capacity < needed {
            // `capacity` is below `needed`, so it is the number of a row: the first of the next chunk.
            let (index, _) = schedule.locate(capacity as u32);
            let rows_in = schedule.rows_in(index);
            wanted.push((index, rows_in * self.array.row_bytes() as u64));
            capacity += rows_in;
        }
        if !wanted.is_empty() {
            self.array.table.create(&wanted)?;
            self.capacity = capacity;
        }
        Ok(())
    }

    /// Stores a row and returns its number; readers see it after [`Self::publish`].
    ///
    /// # Panics
    /// When the row has another width, or there is no reserved room.
    pub fn push(&mut self, values: &[T]) -> u32 {
        assert_eq!(
            values.len(),
            self.array.width,
            "a row has the array's width"
        );
        assert!(
            u64::from(self.pushed) < self.capacity,
            "room was reserved before the push"
        );
        let row = self.pushed;
        let (chunk, within) = self.array.schedule.locate(row);
        let chunk = self
            .array
            .table
            .get(chunk)
            .expect("reserved rows lie in mapped chunks");
        // SAFETY: `row` is past the published length, which only this handle moves (it is not Clone and
        // publishes through `&mut self`), so nobody else reads or writes the row.
        unsafe { chunk.write(within as usize * self.array.row_bytes(), values) };
        self.pushed += 1;
        row
    }

    /// Makes all pushed rows visible to readers.
    pub fn publish(&mut self) {
        self.array.published.store(self.pushed, Ordering::Release);
    }

    /// Forgets the rows pushed since the last publish; their room stays reserved.
    pub fn discard(&mut self) {
        self.pushed = self.array.len();
    }
}
