use std::sync::Arc;

use super::*;
use crate::dir::{DirError, Directory, FsDirectory, MemDirectory};

const KIND: crate::file::Kind = *b"TEST";

fn write(dir: &Arc<dyn Directory>, rows: &[[u32; 3]]) {
    let mut writer = MappedWriter::create(dir, "f", KIND, 3, rows.len() as u64).unwrap();
    for row in rows {
        writer.push(row);
    }
    writer.finish().unwrap();
}

#[test]
fn rows_read_back_alone_and_together() {
    let dir: Arc<dyn Directory> = Arc::new(MemDirectory::new());
    write(&dir, &[[1, 2, 3], [4, 5, 6], [7, 8, 9]]);
    let rows = MappedRows::<u32>::open(dir.as_ref(), "f", KIND, 3).unwrap();
    assert_eq!((rows.len(), rows.width()), (3, 3));
    assert_eq!(rows.row(1), [4, 5, 6]);
    assert_eq!(rows.slice(1, 99), [4, 5, 6, 7, 8, 9]);
    assert!(rows.slice(7, 9).is_empty());
    assert_eq!(rows.row(0).as_ptr().addr() % 64, 0);
    rows.file().verify().unwrap();
    rows.prefetch(1 << 40);
}

#[test]
fn a_file_without_rows_is_a_file() {
    let dir: Arc<dyn Directory> = Arc::new(MemDirectory::new());
    write(&dir, &[]);
    let rows = MappedRows::<u32>::open(dir.as_ref(), "f", KIND, 3).unwrap();
    assert!(rows.is_empty() && rows.slice(0, 5).is_empty());
    rows.file().verify().unwrap();
}

#[test]
fn another_kind_width_or_length_is_refused() {
    let dir: Arc<dyn Directory> = Arc::new(MemDirectory::new());
    write(&dir, &[[1, 2, 3]]);
    let open = |kind, width| MappedRows::<u32>::open(dir.as_ref(), "f", kind, width).map(drop);
    assert!(matches!(open(*b"ELSE", 3), Err(DirError::Damaged { .. })));
    assert!(matches!(open(KIND, 4), Err(DirError::Damaged { .. })));
    assert!(open(KIND, 3).is_ok());
    assert!(matches!(
        MappedRows::<u32>::open(dir.as_ref(), "none", KIND, 3),
        Err(DirError::Io { .. })
    ));
}

#[test]
fn any_changed_byte_and_any_other_length_is_noticed() {
    let temp = tempfile::tempdir().unwrap();
    let dir: Arc<dyn Directory> = Arc::new(FsDirectory::open(temp.path()).unwrap());
    write(&dir, &[[1, 2, 3], [4, 5, 6]]);
    let path = temp.path().join("f");
    let good = std::fs::read(&path).unwrap();
    assert_eq!(good.len(), HEADER_BYTES + 24);
    let check = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        MappedRows::<u32>::open(dir.as_ref(), "f", KIND, 3)
            .and_then(|rows| rows.file().verify())
            .is_ok()
    };
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x40;
        assert!(!check(&bad), "byte {at}");
    }
    for len in [0, 1, 39, 63, 64, 87] {
        assert!(!check(&good[..len]), "cut to {len}");
    }
    let mut longer = good.clone();
    longer.push(0);
    assert!(!check(&longer));
    assert!(check(&good));
}
