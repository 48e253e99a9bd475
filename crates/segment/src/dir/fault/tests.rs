//! What is lost, what is kept, and what fails when.

use std::sync::Arc;

use super::*;
use crate::dir::MemDirectory;

/// Copies bytes into a region that the test alone uses.
fn store(region: &dyn Region, at: usize, bytes: &[u8]) {
    assert!(at + bytes.len() <= region.len() as usize);
    let (target, source) = (region.as_ptr().wrapping_add(at), bytes.as_ptr());
    // SAFETY: the range lies inside the region, and no other reference to it exists.
    unsafe { target.copy_from_nonoverlapping(source, bytes.len()) };
}

fn load(dir: &FaultDirectory, name: &str, at: usize) -> u8 {
    let region = dir.open_region(name).unwrap();
    assert!(at < region.len() as usize);
    // SAFETY: the byte lies inside the region, and nobody stores to it.
    unsafe { region.as_ptr().wrapping_add(at).read() }
}

fn lost(dir: &FaultDirectory) -> FaultDirectory {
    dir.after_power_loss(Unsynced::Lost).unwrap()
}

#[test]
fn pages_of_a_region_are_lost_unless_they_were_synced_and_survive_a_kill() {
    let dir = FaultDirectory::new();
    let region = dir.create_region("r", 10_000).unwrap();
    dir.sync().unwrap();
    store(&*region, 0, b"a");
    store(&*region, 5_000, b"b");
    region.sync(0..1).unwrap();
    let left = lost(&dir);
    assert_eq!((load(&left, "r", 0), load(&left, "r", 5_000)), (b'a', 0));
    let killed = dir.after_kill().unwrap();
    assert_eq!(
        (load(&killed, "r", 0), load(&killed, "r", 5_000)),
        (b'a', b'b')
    );
    let left = lost(&killed);
    assert_eq!(load(&left, "r", 5_000), 0, "a kill syncs nothing");
    let kept = |seed| {
        let left = dir.after_power_loss(Unsynced::Seeded(seed)).unwrap();
        load(&left, "r", 5_000) == b'b'
    };
    let count = (0..32).filter(|&seed| kept(seed)).count();
    assert!((1..32).contains(&count), "{count} of 32 keep the page");
}

#[test]
fn an_appended_suffix_is_torn_anywhere_and_what_was_synced_is_whole() {
    let dir = FaultDirectory::new();
    let mut file = dir.create_append("log").unwrap();
    dir.sync().unwrap();
    file.append(b"synced").unwrap();
    file.syncer().sync().unwrap();
    file.append(b" and more").unwrap();
    assert_eq!(lost(&dir).read("log").unwrap(), b"synced");
    let mut lens = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let left = dir.after_power_loss(Unsynced::Seeded(seed)).unwrap();
        let bytes = left.read("log").unwrap();
        assert!(bytes.starts_with(b"synced"));
        lens.insert(bytes.len());
    }
    assert_eq!(lens.len(), 10, "every length from 6 to 15: {lens:?}");
}

#[test]
fn names_are_lost_unless_they_were_synced_and_a_small_file_is_old_or_new() {
    let dir = FaultDirectory::new();
    dir.write_atomic("small", b"old").unwrap();
    dir.create_append("unsynced").unwrap();
    let before = dir.faults().operations();
    dir.faults().schedule(before + 3, Fault::Stop, 0);
    assert!(dir.write_atomic("small", b"new").is_err());
    assert_eq!(
        dir.faults().journal().last().unwrap().operation,
        Operation::SyncDirectory
    );
    assert_eq!(lost(&dir).read("small").unwrap(), b"old");
    assert!(!lost(&dir).exists("unsynced").unwrap());
    let kept = dir.after_power_loss(Unsynced::Kept).unwrap();
    assert_eq!(kept.read("small").unwrap(), b"new");
    assert!(kept.exists("unsynced").unwrap());
    assert!(dir.read("small").is_err(), "the process is over");
}

#[test]
fn a_rename_is_whole_or_absent() {
    let dir = FaultDirectory::new();
    dir.subdir("one").unwrap().write_atomic("f", b"x").unwrap();
    dir.faults()
        .schedule(dir.faults().operations() + 1, Fault::Stop, 0);
    assert!(dir.rename_subdir("one", "two").is_err());
    for seed in 0..20 {
        let left = dir.after_power_loss(Unsynced::Seeded(seed)).unwrap();
        let names = left.subdirs().unwrap();
        assert!(names == ["one"] || names == ["two"], "{names:?}");
        assert_eq!(left.subdir(&names[0]).unwrap().read("f").unwrap(), b"x");
    }
}

#[test]
fn what_a_failed_sync_left_out_is_lost_though_a_later_one_succeeds() {
    let dir = FaultDirectory::new();
    let region = dir.create_region("r", 8_192).unwrap();
    let mut file = dir.create_append("log").unwrap();
    dir.sync().unwrap();
    store(&*region, 0, b"a");
    file.append(b"first").unwrap();
    let before = dir.faults().operations();
    for at in before..before + 2 {
        dir.faults().schedule(at, Fault::Fail, 0);
    }
    let failed = region.sync(0..1).unwrap_err();
    assert!(matches!(failed, DirError::SyncFailed { .. }), "{failed}");
    assert!(file.syncer().sync().is_err());
    region.sync(0..1).unwrap();
    file.append(b" then").unwrap();
    file.syncer().sync().unwrap();
    let left = dir.after_power_loss(Unsynced::Kept).unwrap();
    assert_eq!(load(&left, "r", 0), 0);
    assert_eq!(left.read("log").unwrap(), b"\0\0\0\0\0 then");
    // Stored anew, the page is written with all that is on it.
    store(&*region, 1, b"b");
    region.sync(0..2).unwrap();
    let left = lost(&dir);
    assert_eq!((load(&left, "r", 0), load(&left, "r", 1)), (b'a', b'b'));
}

#[test]
fn the_nth_operation_fails_once_and_a_torn_append_says_how_much_it_wrote() {
    let dir = FaultDirectory::new();
    let mut file = dir.create_append("log").unwrap();
    for seed in 0..20 {
        dir.faults()
            .schedule(dir.faults().operations(), Fault::Fail, seed);
        let before = file.len();
        let failed = file.append(b"0123456789").unwrap_err();
        assert!(failed.written < 10);
        assert_eq!(file.len(), before + failed.written);
        file.truncate(before).unwrap();
        file.append(b"0").unwrap();
    }
    assert_eq!(dir.read("log").unwrap(), vec![b'0'; 20]);
    let reads = dir.faults().reads();
    dir.faults().fail_read(reads);
    assert!(dir.list().is_err());
    assert_eq!(dir.list().unwrap(), ["log"]);
}

#[test]
fn a_full_disk_refuses_new_bytes_takes_reserved_ones_and_has_room_for_what_was_removed() {
    let dir = FaultDirectory::new();
    dir.create_region("r", 100).unwrap();
    let mut file = dir.create_append("log").unwrap();
    file.reserve(5).unwrap();
    dir.faults().set_full(true);
    let is_full = |error: DirError| matches!(error, DirError::DiskFull { .. });
    assert!(is_full(dir.create_append("other").unwrap_err()));
    assert!(is_full(dir.write_atomic("small", b"x").unwrap_err()));
    assert!(is_full(dir.subdir("sub").unwrap_err()));
    assert!(is_full(file.reserve(6).unwrap_err()));
    file.append(b"123").unwrap();
    let failed = file.append(b"4567").unwrap_err();
    assert_eq!(failed.written, 2);
    assert!(is_full(failed.source));
    dir.remove("r").unwrap();
    assert!(is_full(dir.create_region("r", 101).unwrap_err()));
    dir.create_region("r", 100).unwrap();
    dir.faults().set_full(false);
    dir.create_append("other").unwrap();
}

/// The same calls on another directory, for the parts of the contract that need no fault.
#[test]
fn without_faults_it_answers_as_the_directory_in_memory_does() {
    fn calls(dir: &dyn Directory) -> Vec<String> {
        let mut told = Vec::new();
        let mut tell = |what: String| told.push(what);
        let of = |outcome: Result<()>| match outcome {
            Ok(()) => "done".to_owned(),
            Err(e) => format!("not found {}, exists {}", e.is_not_found(), e.is_exists()),
        };
        tell(of(dir.write_atomic("a", b"1")));
        tell(of(dir.create_append("a").map(drop)));
        tell(of(dir.open_append("b").map(drop)));
        tell(of(dir.create_region("r", 10).map(drop)));
        tell(of(dir.open_region("a").map(drop)));
        tell(of(dir.remove("none")));
        tell(of(dir.remove_subdir("none")));
        tell(of(dir.subdir("s").map(drop)));
        tell(of(dir.subdir("t").map(drop)));
        tell(of(dir.rename_subdir("s", "t")));
        tell(of(dir.rename_subdir("s", "u")));
        tell(of(dir.remove_subdir("a")));
        tell(of(dir.remove_subdir("t")));
        tell(of(dir.read("../a").map(drop)));
        tell(format!(
            "{:?} {:?}",
            dir.list().unwrap(),
            dir.subdirs().unwrap()
        ));
        tell(format!("{:?}", dir.read_range("a", 0..9).unwrap()));
        tell(format!("{:?}", dir.exists("u").unwrap()));
        let lock = dir.lock().unwrap();
        tell(format!("{}", dir.lock().is_err()));
        drop(lock);
        tell(format!("{}", dir.lock().is_err()));
        told
    }
    let (fault, mem) = (FaultDirectory::new(), MemDirectory::new());
    assert_eq!(calls(&fault), calls(&mem));
    let again = Arc::new(fault.after_kill().unwrap());
    assert_eq!(again.list().unwrap(), fault.list().unwrap());
}
