//! Readers beside a writer, and what is there after a reopening.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;

use super::{BlobAddr, BlobPos, BlobWriter, CHUNK_BYTES_MIN, ChunkWriter};
use crate::dir::{DirError, Directory, FsDirectory, MemDirectory};

fn mem() -> Arc<dyn Directory> {
    Arc::new(MemDirectory::new())
}

fn disk() -> (tempfile::TempDir, Arc<dyn Directory>) {
    let temp = tempfile::tempdir().unwrap();
    let dir = Arc::new(FsDirectory::open(temp.path()).unwrap());
    (temp, dir)
}

/// Row `row` of an array of `width` values, different for each row and place.
fn values(row: u32, width: usize) -> Vec<u32> {
    (0..width as u32)
        .map(|i| row.wrapping_mul(31).wrapping_add(i))
        .collect()
}

fn push_rows(writer: &mut ChunkWriter<u32>, rows: std::ops::Range<u32>) {
    let width = writer.array().width();
    writer.reserve(rows.end - rows.start).unwrap();
    for row in rows {
        assert_eq!(writer.push(&values(row, width)), row);
    }
}

#[test]
fn readers_see_every_row_below_the_length_while_a_writer_appends() {
    const ROWS: u32 = 120_000;
    const WIDTH: usize = 16;
    let mut writer = ChunkWriter::create(mem(), "rows", WIDTH);
    let array = writer.array();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for reader in 0..3_u32 {
            let (array, done) = (&array, &done);
            scope.spawn(move || {
                let (mut seen, mut step) = (0, reader);
                while !done.load(Ordering::Acquire) || seen < ROWS {
                    let len = array.len();
                    assert!(len >= seen, "a length never goes back");
                    // Every row once, and an older one for each.
                    for row in seen..len {
                        assert_eq!(array.row(row), values(row, WIDTH));
                        step = step.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        let old = step % len;
                        array.prefetch(old);
                        assert_eq!(array.row(old), values(old, WIDTH));
                    }
                    seen = len;
                }
            });
        }
        let mut row = 0;
        while row < ROWS {
            let end = (row + 1 + row % 700).min(ROWS);
            push_rows(&mut writer, row..end);
            writer.publish();
            row = end;
        }
        done.store(true, Ordering::Release);
    });
    assert_eq!(array.len(), ROWS);
}

#[test]
fn runs_cover_the_published_rows_in_order_and_nothing_else() {
    let mut writer = ChunkWriter::create(mem(), "rows", 1_000);
    push_rows(&mut writer, 0..2_500);
    writer.publish();
    push_rows(&mut writer, 2_500..2_510);
    let array = writer.array();
    let (mut row, mut runs) = (0, 0);
    while row < array.len() {
        let (run, rows) = array.run(row);
        assert_eq!(run.len(), rows as usize * 1_000);
        for (i, found) in run.chunks_exact(1_000).enumerate() {
            assert_eq!(found, values(row + i as u32, 1_000));
        }
        row += rows;
        runs += 1;
    }
    assert_eq!(row, 2_500);
    assert!(runs > 32, "more than one size of chunk was used: {runs}");
    assert_eq!(array.run(2_500), (&[][..], 0));
    array.prefetch(u32::MAX);
}

#[test]
fn rows_are_aligned_to_cache_lines_when_their_size_allows() {
    let mut writer = ChunkWriter::<u8>::create(mem(), "codes", 64 * 3);
    writer.reserve(5_000).unwrap();
    for _ in 0..5_000 {
        writer.push(&[7; 64 * 3]);
    }
    writer.publish();
    let array = writer.array();
    assert!((0..5_000).all(|row| array.row(row).as_ptr().addr().is_multiple_of(64)));
}

#[test]
fn an_empty_array_takes_no_file_and_a_row_takes_one_small_one() {
    let (_temp, dir) = disk();
    let mut writer = ChunkWriter::<f32>::create(Arc::clone(&dir), "vectors", 768);
    assert!(dir.list().unwrap().is_empty());
    writer.reserve(1).unwrap();
    assert_eq!(dir.list().unwrap(), ["vectors-00000.chunk"]);
    assert!(dir.open_region("vectors-00000.chunk").unwrap().len() <= CHUNK_BYTES_MIN);
}

#[test]
fn rows_lost_before_their_checkpoint_are_written_anew_after_reopening() {
    let (_temp, dir) = disk();
    let mut writer = ChunkWriter::create(Arc::clone(&dir), "rows", 500);
    push_rows(&mut writer, 0..300);
    writer.publish();
    let array = writer.array();
    array.sync(0, 300).unwrap();
    let recorded = array.checksum(300);
    // Published and stored, but in no checkpoint, over more than one chunk.
    push_rows(&mut writer, 300..900);
    writer.publish();
    drop((writer, array));

    let mut writer = ChunkWriter::<u32>::open(Arc::clone(&dir), "rows", 500, 300).unwrap();
    let array = writer.array();
    array.verify(300, recorded).unwrap();
    assert_eq!((array.len(), writer.pushed()), (300, 300));
    writer.reserve(700).unwrap();
    for row in 300..1_000 {
        writer.push(&values(row + 7, 500));
    }
    writer.publish();
    for row in 0..1_000 {
        let expected = if row < 300 { row } else { row + 7 };
        assert_eq!(array.row(row), values(expected, 500), "row {row}");
    }
}

#[test]
fn a_changed_byte_fails_the_checksum_and_names_the_file() {
    let (temp, dir) = disk();
    let mut writer = ChunkWriter::create(Arc::clone(&dir), "rows", 8);
    push_rows(&mut writer, 0..100);
    writer.publish();
    writer.array().sync(0, 100).unwrap();
    let recorded = writer.array().checksum(100);
    drop(writer);
    let file = temp.path().join("rows-00000.chunk");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[3_100] ^= 4;
    std::fs::write(&file, &bytes).unwrap();
    let writer = ChunkWriter::<u32>::open(Arc::clone(&dir), "rows", 8, 100).unwrap();
    match writer.array().verify(100, recorded).unwrap_err() {
        DirError::Damaged { path, .. } => assert_eq!(path, file),
        other => panic!("{other}"),
    }
    // The row is the 97th: what lies before it still checks.
    assert_eq!(3_100 / 32, 96);
    let before = crc32c::crc32c(bytemuck::cast_slice(
        &(0..96).flat_map(|r| values(r, 8)).collect::<Vec<_>>(),
    ));
    writer.array().verify(96, before).unwrap();
}

#[test]
fn a_missing_or_shortened_chunk_is_an_error_at_open() {
    let (temp, dir) = disk();
    let mut writer = ChunkWriter::create(Arc::clone(&dir), "rows", 8);
    push_rows(&mut writer, 0..100);
    writer.publish();
    drop(writer);
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(temp.path().join("rows-00000.chunk"));
    file.unwrap().set_len(64).unwrap();
    let shortened = ChunkWriter::<u32>::open(Arc::clone(&dir), "rows", 8, 100);
    assert!(matches!(shortened, Err(DirError::Damaged { .. })));
    dir.remove("rows-00000.chunk").unwrap();
    assert!(
        ChunkWriter::<u32>::open(dir, "rows", 8, 100)
            .unwrap_err()
            .is_not_found()
    );
}

#[test]
fn discarded_rows_are_never_seen() {
    let mut writer = ChunkWriter::create(mem(), "rows", 2);
    push_rows(&mut writer, 0..10);
    writer.publish();
    push_rows(&mut writer, 10..20);
    writer.discard();
    writer.reserve(1).unwrap();
    assert_eq!(writer.push(&[1, 2]), 10);
    writer.publish();
    assert_eq!(
        (writer.array().len(), writer.array().row(10)),
        (11, &[1, 2][..])
    );
}

#[test]
fn a_reserve_that_fails_leaves_all_as_it_was() {
    let (_temp, dir) = disk();
    let mut writer = ChunkWriter::create(Arc::clone(&dir), "rows", 1 << 18);
    push_rows(&mut writer, 0..1);
    writer.publish();
    // A directory in the place of the third new chunk: it cannot be created nor removed as a file.
    dir.subdir("rows-00003.chunk").unwrap();
    let files = dir.list().unwrap();
    assert!(matches!(writer.reserve(3), Err(DirError::Io { .. })));
    assert_eq!(
        dir.list().unwrap(),
        files,
        "chunks made before the failure are gone"
    );
    dir.remove_subdir("rows-00003.chunk").unwrap();
    push_rows(&mut writer, 1..4);
    writer.publish();
    assert_eq!(writer.array().row(3), values(3, 1 << 18));
}

#[test]
fn a_longer_prefix_extends_the_known_checksum_and_a_shorter_one_is_computed_anew() {
    let mut writer = ChunkWriter::create(mem(), "rows", 100);
    push_rows(&mut writer, 0..3_000);
    writer.publish();
    let array = writer.array();
    let whole = |rows| {
        let all: Vec<u32> = (0..rows).flat_map(|row| values(row, 100)).collect();
        crc32c::crc32c(bytemuck::cast_slice(&all))
    };
    for rows in [0, 1, 700, 2_999, 1_234, 3_000] {
        assert_eq!(array.checksum(rows), whole(rows), "{rows} rows");
    }
}

fn blob(number: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| (number * 7 + i) as u8).collect()
}

#[test]
fn blobs_of_all_lengths_come_back_and_survive_reopening() {
    let (_temp, dir) = disk();
    let lens = [
        0,
        1,
        300,
        CHUNK_BYTES_MIN as usize - 4,
        5,
        1_000_000,
        7,
        CHUNK_BYTES_MIN as usize,
    ];
    let mut writer = BlobWriter::create(Arc::clone(&dir), "payload");
    writer.reserve(lens).unwrap();
    let addrs: Vec<BlobAddr> = lens
        .iter()
        .enumerate()
        .map(|(i, &len)| writer.push(&blob(i, len)))
        .collect();
    writer.publish();
    let log = writer.log();
    let check = |log: &super::BlobLog| {
        for (i, (&addr, &len)) in addrs.iter().zip(&lens).enumerate() {
            assert_eq!(log.get(addr).unwrap(), blob(i, len));
        }
    };
    check(&log);
    let end = log.end();
    log.sync(BlobPos::default(), end).unwrap();
    // Stored after the checkpoint: gone after reopening.
    writer.reserve([10, 600_000]).unwrap();
    let lost = writer.push(b"0123456789");
    writer.push(&blob(1, 600_000));
    writer.publish();
    drop((writer, log));

    let mut writer = BlobWriter::open(dir, "payload", end).unwrap();
    check(&writer.log());
    assert_eq!(writer.log().get(lost).unwrap_err().check, "blob address");
    writer.reserve([10]).unwrap();
    assert_eq!(writer.push(b"abcdefghij"), lost);
    writer.publish();
    assert_eq!(writer.log().get(lost).unwrap(), b"abcdefghij");
    check(&writer.log());
}

#[test]
fn wrong_addresses_and_changed_bytes_are_damage() {
    let (temp, dir) = disk();
    let mut writer = BlobWriter::create(Arc::clone(&dir), "p");
    writer.reserve([5, 5, 5]).unwrap();
    let first = writer.push(b"hello");
    let second = writer.push(b"hello");
    writer.publish();
    let unpublished = writer.push(b"later");
    let log = writer.log();
    assert_eq!(log.get(unpublished).unwrap_err().check, "blob address");
    for wrong in [
        BlobAddr { len: 4, ..first },
        BlobAddr { offset: 1, ..first },
        BlobAddr {
            offset: u32::MAX,
            ..first
        },
        BlobAddr {
            len: u32::MAX,
            ..first
        },
        BlobAddr { chunk: 1, ..first },
        BlobAddr {
            chunk: u32::MAX,
            ..first
        },
    ] {
        log.get(wrong).unwrap_err();
    }
    let end = log.end();
    log.sync(BlobPos::default(), end).unwrap();
    drop((writer, log));
    // A copy of the first blob over the second: its bytes check only at its own place.
    let file = temp.path().join("p-00000.chunk");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes.copy_within(0..9, 9);
    std::fs::write(&file, &bytes).unwrap();
    let writer = BlobWriter::open(dir, "p", end).unwrap();
    assert_eq!(writer.log().get(first).unwrap(), b"hello");
    assert_eq!(writer.log().get(second).unwrap_err().check, "blob checksum");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn reserved_blobs_never_run_out_of_room(
        batches in proptest::collection::vec(
            proptest::collection::vec(prop_oneof![4 => 0_usize..2_000, 1 => 0_usize..600_000], 0..12),
            0..8,
        ),
        publish in proptest::collection::vec(any::<bool>(), 8),
    ) {
        let mut writer = BlobWriter::create(mem(), "p");
        let mut kept = Vec::new();
        for (lens, publish) in batches.iter().zip(publish) {
            writer.reserve(lens.iter().copied()).unwrap();
            let mut pushed = Vec::new();
            for (i, &len) in lens.iter().enumerate() {
                pushed.push((writer.push(&blob(i, len)), i, len));
            }
            if publish {
                writer.publish();
                kept.extend(pushed);
            } else {
                writer.discard();
            }
        }
        let log = writer.log();
        for (addr, i, len) in kept {
            prop_assert_eq!(log.get(addr).unwrap(), blob(i, len));
        }
    }
}
