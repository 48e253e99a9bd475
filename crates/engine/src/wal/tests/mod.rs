//! The log under torn tails, damage, failed writes, killed processes and power losses.

mod disk;
mod random;

use std::sync::Arc;

use flatwater_segment::SeqNo;
use flatwater_segment::dir::{Directory, FsDirectory};

use self::disk::{Faults, TestDisk};
use super::{Replayed, Wal, WalOptions, file_name};
use crate::error::{EngineError, Result};

const OPTIONS: WalOptions = WalOptions {
    file_bytes: 1 << 20,
    floor: 0,
    synced: 0,
};

type Records = Vec<(SeqNo, Vec<u8>)>;

fn open_with(dir: Arc<dyn Directory>, options: WalOptions) -> Result<(Wal, Replayed, Records)> {
    let mut records = Vec::new();
    let (wal, replayed) = Wal::open(dir, options, &mut |seq, body| {
        records.push((seq, body.to_vec()));
        Ok(())
    })?;
    Ok((wal, replayed, records))
}

fn open(disk: &TestDisk) -> (Wal, Replayed, Records) {
    open_with(disk.dir(), OPTIONS).unwrap()
}

/// Body of record `seq`: of a length of its own.
fn body(seq: SeqNo) -> Vec<u8> {
    format!("operation {seq} {}", "x".repeat(seq as usize % 7)).into_bytes()
}

fn records(seqs: std::ops::RangeInclusive<SeqNo>) -> Records {
    seqs.map(|seq| (seq, body(seq))).collect()
}

fn append(wal: &mut Wal, seqs: std::ops::RangeInclusive<SeqNo>) {
    for seq in seqs {
        wal.append(seq, &body(seq)).unwrap();
    }
}

/// Bytes of the records of [`body`].
fn stored_bytes(seqs: std::ops::RangeInclusive<SeqNo>) -> usize {
    seqs.map(|seq| 24 + body(seq).len()).sum()
}

/// A disk with records 1 to `last` in file 1, record `synced` being the last one synced before the next append.
fn written(last: SeqNo, synced: SeqNo) -> (TestDisk, Vec<u8>) {
    let disk = TestDisk::default();
    let (mut wal, ..) = open(&disk);
    append(&mut wal, 1..=synced);
    wal.syncer().sync().unwrap();
    append(&mut wal, synced + 1..=last);
    let bytes = disk.dir().read(&file_name(1)).unwrap();
    assert_eq!(bytes.len(), 40 + stored_bytes(1..=last));
    (disk, bytes)
}

#[test]
fn records_come_back_in_order_after_reopening_again_and_again() {
    let disk = TestDisk::default();
    let (mut wal, replayed, none) = open(&disk);
    assert_eq!((replayed.last_seq, none), (0, Records::new()));
    assert!(
        disk.dir().list().unwrap().is_empty(),
        "no file before the first append"
    );
    append(&mut wal, 1..=5);
    drop(wal);
    let (mut wal, replayed, found) = open(&disk);
    assert_eq!((replayed.cut, found), (None, records(1..=5)));
    assert_eq!(wal.syncer().synced_seq(), 5, "what was replayed is synced");
    append(&mut wal, 6..=9);
    drop(wal);
    open(&disk);
    let (wal, _, found) = open(&disk);
    assert_eq!(found, records(1..=9));
    assert_eq!(
        wal.syncer().file_count(),
        2,
        "an opening without appends begins no file"
    );
}

#[test]
fn only_records_past_the_floor_are_visited() {
    let (disk, _) = written(9, 9);
    let options = WalOptions {
        floor: 4,
        synced: 6,
        ..OPTIONS
    };
    let (wal, replayed, found) = open_with(disk.dir(), options).unwrap();
    assert_eq!(
        (found, replayed.visited, wal.next_seq()),
        (records(5..=9), 5, 10)
    );
}

#[test]
fn a_new_log_goes_on_from_what_checkpoints_hold() {
    let disk = TestDisk::default();
    // Where one segment's checkpoint still needs records, a log without them is not new.
    let missing = WalOptions {
        floor: 70,
        synced: 75,
        ..OPTIONS
    };
    let refused = open_with(disk.dir(), missing);
    assert!(matches!(refused, Err(EngineError::Corrupt { .. })));
    let options = WalOptions {
        floor: 75,
        ..missing
    };
    let (mut wal, ..) = open_with(disk.dir(), options).unwrap();
    append(&mut wal, 76..=77);
    drop(wal);
    assert_eq!(open_with(disk.dir(), options).unwrap().2, records(76..=77));
}

#[test]
fn a_tail_torn_at_any_byte_of_the_last_record_is_cut() {
    let (_, bytes) = written(5, 2);
    let start = 40 + stored_bytes(1..=4);
    for len in start + 1..bytes.len() {
        let disk = TestDisk::default();
        disk.put(&file_name(1), bytes[..len].to_vec());
        let (mut wal, replayed, found) = open(&disk);
        assert_eq!(found, records(1..=4), "cut to {len}");
        let cut = replayed.cut.unwrap();
        assert_eq!(
            (cut.offset, cut.bytes),
            (start as u64, (len - start) as u64)
        );
        assert_eq!(disk.dir().read(&file_name(1)).unwrap().len(), start);
        wal.append(5, b"another fifth").unwrap();
        drop(wal);
        let (_, replayed, found) = open(&disk);
        assert_eq!(found.last(), Some(&(5, b"another fifth".to_vec())));
        assert_eq!(replayed.cut, None);
    }
}

#[test]
fn a_changed_byte_anywhere_in_the_last_record_cuts_it_and_nothing_else() {
    let (_, bytes) = written(5, 2);
    let start = 40 + stored_bytes(1..=4);
    for at in start..bytes.len() {
        let disk = TestDisk::default();
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x40;
        disk.put(&file_name(1), damaged);
        let (_, replayed, found) = open(&disk);
        assert_eq!(
            (found, replayed.cut.unwrap().offset),
            (records(1..=4), start as u64)
        );
    }
}

#[test]
fn damage_in_the_middle_with_a_later_claim_of_a_sync_is_refused_and_left_alone() {
    // Record 6 was written after 1 to 5 had been synced, and says so.
    let (_, bytes) = written(6, 5);
    for lost in 1..=5 {
        let start = 40 + stored_bytes(1..=lost - 1);
        for at in start..40 + stored_bytes(1..=lost) {
            let disk = TestDisk::default();
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x01;
            disk.put(&file_name(1), damaged.clone());
            match open_with(disk.dir(), OPTIONS).unwrap_err() {
                EngineError::Corrupt {
                    file,
                    offset,
                    detail,
                } => {
                    assert!(file.ends_with(&file_name(1)), "{file}");
                    assert_eq!(offset, start as u64);
                    assert!(detail.contains("had been synced"), "{detail}");
                }
                other => panic!("{other}"),
            }
            assert_eq!(disk.dir().read(&file_name(1)).unwrap(), damaged);
        }
    }
}

#[test]
fn damage_in_the_middle_without_a_claim_is_cut_with_all_behind_it() {
    let (_, bytes) = written(6, 2);
    let start = 40 + stored_bytes(1..=3);
    let disk = TestDisk::default();
    let mut damaged = bytes.clone();
    damaged[start + 25] ^= 0x01;
    disk.put(&file_name(1), damaged);
    let (_, replayed, found) = open(&disk);
    assert_eq!(found, records(1..=3));
    assert_eq!(replayed.cut.unwrap().bytes, (bytes.len() - start) as u64);
}

#[test]
fn checkpoints_are_a_claim_too() {
    let (disk, bytes) = written(6, 2);
    let mut damaged = bytes;
    let start = 40 + stored_bytes(1..=3);
    damaged[start + 25] ^= 0x01;
    disk.put(&file_name(1), damaged.clone());
    let options = WalOptions {
        synced: 4,
        ..OPTIONS
    };
    assert!(matches!(
        open_with(disk.dir(), options),
        Err(EngineError::Corrupt { .. })
    ));
    // A log that ends in good order, but too early.
    damaged.truncate(start);
    disk.put(&file_name(1), damaged);
    assert!(matches!(
        open_with(disk.dir(), options),
        Err(EngineError::Corrupt { .. })
    ));
    let options = WalOptions {
        synced: 3,
        ..OPTIONS
    };
    assert_eq!(open_with(disk.dir(), options).unwrap().2, records(1..=3));
}

#[test]
fn damage_in_an_older_file_is_refused_by_the_header_of_a_newer_one() {
    let (disk, mut bytes) = written(3, 1);
    // Opening syncs 1 to 3; the next file's header says so, without any record.
    let (mut wal, ..) = open(&disk);
    append(&mut wal, 4..=4);
    drop(wal);
    let newer = disk.dir().read(&file_name(2)).unwrap();
    disk.put(&file_name(2), newer[..40].to_vec());
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    disk.put(&file_name(1), bytes);
    assert!(matches!(
        open_with(disk.dir(), OPTIONS),
        Err(EngineError::Corrupt { .. })
    ));
    // So is a missing file.
    disk.dir().remove(&file_name(1)).unwrap();
    assert!(matches!(
        open_with(disk.dir(), OPTIONS),
        Err(EngineError::Corrupt { .. })
    ));
}

#[test]
fn a_file_of_another_format_version_is_refused_and_not_cut() {
    let (disk, mut bytes) = written(2, 0);
    bytes[8] = 2;
    let covered = [&bytes[..12], &bytes[16..40]].concat();
    let crc = crc32c::crc32c(&covered);
    bytes[12..16].copy_from_slice(&crc.to_le_bytes());
    disk.put(&file_name(1), bytes.clone());
    match open_with(disk.dir(), OPTIONS).unwrap_err() {
        EngineError::Corrupt { offset, detail, .. } => {
            assert_eq!(offset, 8);
            assert!(detail.contains("version 2"), "{detail}");
        }
        other => panic!("{other}"),
    }
    assert_eq!(disk.dir().read(&file_name(1)).unwrap(), bytes);
}

#[test]
fn a_number_out_of_order_in_a_file_is_corruption() {
    let (disk, bytes) = written(4, 0);
    let (second, third) = (40 + stored_bytes(1..=1), 40 + stored_bytes(1..=2));
    let without_second = [&bytes[..second], &bytes[third..]].concat();
    disk.put(&file_name(1), without_second);
    match open_with(disk.dir(), OPTIONS).unwrap_err() {
        EngineError::Corrupt { offset, detail, .. } => {
            assert_eq!(offset, second as u64);
            assert_eq!(detail, "record 3 stands where 2 is due");
        }
        other => panic!("{other}"),
    }
}

#[test]
fn stale_records_behind_a_cut_never_count_again() {
    let (disk, bytes) = written(6, 2);
    let start = 40 + stored_bytes(1..=3);
    let mut damaged = bytes.clone();
    damaged[start + 25] ^= 0x01;
    disk.put(&file_name(1), damaged);
    let (mut wal, ..) = open(&disk);
    wal.append(4, b"the new fourth").unwrap();
    drop(wal);
    // As if the cut had never reached the disk, and the damage had been a passing one.
    disk.put(&file_name(1), bytes.clone());
    let (_, replayed, found) = open(&disk);
    assert_eq!(found.len(), 4);
    assert_eq!(found[3], (4, b"the new fourth".to_vec()));
    assert_eq!(replayed.last_seq, 4);
    // Stale bytes that lie in a later file count as little: another generation seeds its checksums.
    let newer = disk.dir().read(&file_name(2)).unwrap();
    disk.put(
        &file_name(2),
        [&newer[..], &bytes[start + stored_bytes(4..=4)..]].concat(),
    );
    let (_, replayed, found) = open(&disk);
    assert_eq!(
        (found.len(), replayed.cut.unwrap().offset),
        (4, newer.len() as u64)
    );
}

#[test]
fn a_failed_or_short_append_is_cut_back_and_the_number_tried_again() {
    for written in [0, 1, 23, 24, 30] {
        let disk = TestDisk::default();
        let (mut wal, ..) = open(&disk);
        append(&mut wal, 1..=2);
        disk.set_faults(Faults {
            append_after: Some(written),
            ..Faults::default()
        });
        assert!(matches!(
            wal.append(3, &body(3)),
            Err(EngineError::DiskFull { .. })
        ));
        assert_eq!(
            disk.dir().read(&file_name(1)).unwrap().len(),
            40 + stored_bytes(1..=2)
        );
        append(&mut wal, 3..=4);
        assert_eq!(wal.syncer().sync().unwrap(), 4);
        drop(wal);
        let (_, replayed, found) = open(&disk);
        assert_eq!((found, replayed.cut), (records(1..=4), None));
    }
}

#[test]
fn an_append_that_cannot_be_cut_back_poisons_until_reopening() {
    let disk = TestDisk::default();
    let (mut wal, ..) = open(&disk);
    append(&mut wal, 1..=2);
    disk.set_faults(Faults {
        append_after: Some(10),
        truncate: true,
        ..Faults::default()
    });
    assert!(matches!(
        wal.append(3, &body(3)),
        Err(EngineError::DiskFull { .. })
    ));
    disk.set_faults(Faults::default());
    assert!(matches!(
        wal.append(3, &body(3)),
        Err(EngineError::Poisoned(_))
    ));
    assert!(matches!(wal.reserve(1), Err(EngineError::Poisoned(_))));
    assert!(matches!(wal.syncer().sync(), Err(EngineError::Poisoned(_))));
    drop(wal);
    let (mut wal, replayed, found) = open(&disk);
    assert_eq!((found, replayed.cut.unwrap().bytes), (records(1..=2), 10));
    append(&mut wal, 3..=3);
}

#[test]
fn a_failed_sync_poisons_for_good_and_what_is_synced_stays() {
    let disk = TestDisk::default();
    let (mut wal, ..) = open(&disk);
    append(&mut wal, 1..=2);
    let sync = wal.syncer();
    assert_eq!(sync.sync().unwrap(), 2);
    append(&mut wal, 3..=3);
    disk.set_faults(Faults {
        sync: true,
        ..Faults::default()
    });
    assert!(matches!(
        sync.sync(),
        Err(EngineError::SyncFailed { .. } | EngineError::Io { .. })
    ));
    disk.set_faults(Faults::default());
    assert!(matches!(sync.sync(), Err(EngineError::Poisoned(_))));
    assert!(matches!(wal.append(4, b""), Err(EngineError::Poisoned(_))));
    assert!(sync.is_poisoned());
    assert_eq!(sync.synced_seq(), 2);
}

#[test]
fn files_rotate_and_are_removed_once_below_the_floor_but_never_the_newest() {
    let disk = TestDisk::default();
    // Three or four records a file.
    let options = WalOptions {
        file_bytes: 40 + 160,
        ..OPTIONS
    };
    let (mut wal, ..) = open_with(disk.dir(), options).unwrap();
    append(&mut wal, 1..=10);
    let sync = wal.syncer();
    assert_eq!(sync.truncate_below(10).unwrap(), 0, "nothing is synced yet");
    sync.sync().unwrap();
    assert_eq!(
        sync.truncate_below(10).unwrap(),
        0,
        "no file says yet that it is synced"
    );
    append(&mut wal, 11..=20);
    let files = sync.file_count();
    assert!((5..=7).contains(&files), "{files} files");
    sync.sync().unwrap();
    assert_eq!(sync.truncate_below(0).unwrap(), 0);
    assert!(sync.truncate_below(10).unwrap() >= 2);
    drop(wal);
    let at_floor = WalOptions {
        floor: 10,
        synced: 10,
        ..options
    };
    let (mut wal, _, found) = open_with(disk.dir(), at_floor).unwrap();
    assert_eq!(found, records(11..=20));
    // With a floor that is not there any more, records are missing.
    let below = WalOptions {
        floor: 2,
        synced: 2,
        ..options
    };
    assert!(matches!(
        open_with(disk.dir(), below),
        Err(EngineError::Corrupt { .. })
    ));
    append(&mut wal, 21..=21);
    assert!(wal.syncer().truncate_below(SeqNo::MAX).unwrap() >= 3);
    assert_eq!(
        wal.syncer().file_count(),
        1,
        "the newest stays: it knows the next number"
    );
    drop(wal);
    let at_floor = WalOptions {
        floor: 20,
        synced: 20,
        ..options
    };
    assert_eq!(open_with(disk.dir(), at_floor).unwrap().2, records(21..=21));
}

#[test]
fn a_record_larger_than_a_file_gets_one_of_its_own() {
    let disk = TestDisk::default();
    let options = WalOptions {
        file_bytes: 200,
        ..OPTIONS
    };
    let (mut wal, ..) = open_with(disk.dir(), options).unwrap();
    append(&mut wal, 1..=1);
    wal.append(2, &[7; 3_000_000]).unwrap();
    append(&mut wal, 3..=3);
    assert_eq!(wal.syncer().file_count(), 3);
    drop(wal);
    let (_, _, found) = open_with(disk.dir(), options).unwrap();
    assert_eq!(found[1], (2, vec![7; 3_000_000]));
    assert_eq!(found.len(), 3);
}

#[test]
fn a_body_past_the_limit_is_refused_and_changes_nothing() {
    let disk = TestDisk::default();
    let (mut wal, ..) = open(&disk);
    let long = vec![0; super::BODY_BYTES_MAX as usize + 1];
    match wal.append(1, &long).unwrap_err() {
        EngineError::Invalid(text) => assert!(text.contains("268435456"), "{text}"),
        other => panic!("{other}"),
    }
    append(&mut wal, 1..=1);
}

#[test]
fn on_a_full_disk_a_reserve_is_refused_and_a_deletion_goes_into_the_full_file() {
    let disk = TestDisk::default();
    let options = WalOptions {
        file_bytes: 40 + 80,
        ..OPTIONS
    };
    let (mut wal, ..) = open_with(disk.dir(), options).unwrap();
    wal.reserve(10).unwrap();
    append(&mut wal, 1..=2);
    disk.set_faults(Faults {
        full: true,
        ..Faults::default()
    });
    assert!(matches!(
        wal.reserve(3 << 20),
        Err(EngineError::DiskFull { .. })
    ));
    append(&mut wal, 3..=9);
    assert_eq!(wal.syncer().file_count(), 1, "no room for another file");
    disk.set_faults(Faults::default());
    wal.reserve(2 << 20).unwrap();
    wal.append(10, &vec![1; 2 << 20]).unwrap();
    assert_eq!(wal.syncer().file_count(), 2);
    drop(wal);
    assert_eq!(open_with(disk.dir(), options).unwrap().2.len(), 10);
}

#[test]
fn what_a_visitor_refuses_is_returned_and_changes_nothing() {
    let (disk, mut bytes) = written(3, 0);
    bytes.pop();
    disk.put(&file_name(1), bytes.clone());
    let stopped = Wal::open(disk.dir(), OPTIONS, &mut |seq, _| match seq {
        2 => Err(EngineError::Stopping),
        _ => Ok(()),
    });
    assert!(matches!(stopped, Err(EngineError::Stopping)));
    assert_eq!(disk.dir().read(&file_name(1)).unwrap(), bytes);
}

#[test]
fn syncs_run_beside_appends_and_never_claim_what_was_not_appended() {
    let temp = tempfile::tempdir().unwrap();
    let dir: Arc<dyn Directory> = Arc::new(FsDirectory::open(temp.path()).unwrap());
    let options = WalOptions {
        file_bytes: 10_000,
        ..OPTIONS
    };
    let (mut wal, ..) = open_with(Arc::clone(&dir), options).unwrap();
    let sync = wal.syncer();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut last = 0;
            while last < 2_000 {
                let synced = sync.sync().unwrap();
                assert!(synced >= last);
                last = synced;
                sync.truncate_below(synced / 2).unwrap();
            }
        });
        for seq in 1..=2_000 {
            wal.reserve(body(seq).len()).unwrap();
            wal.append(seq, &body(seq)).unwrap();
            assert!(sync.synced_seq() <= seq);
        }
    });
    drop(wal);
    let options = WalOptions {
        floor: 1_000,
        synced: 2_000,
        ..options
    };
    let (_, replayed, found) = open_with(dir, options).unwrap();
    assert_eq!((found, replayed.cut), (records(1_001..=2_000), None));
}
