//! How large the files of a store are, and how much room there is beside them.

use std::path::Path;

/// The room of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disk {
    /// Of the file.
    pub file_bytes: u64,
    /// Of its log.
    pub log_bytes: u64,
    /// Of the file system, for its users.
    pub size_bytes: u64,
    /// That is free there.
    pub free_bytes: u64,
}

impl Disk {
    /// Of a file, its log and the file system on which both are. What the system does not tell is 0.
    #[must_use]
    pub fn of(file: &Path) -> Self {
        let bytes = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        let room = rustix::fs::statvfs(file).ok();
        let blocks = |blocks: fn(&rustix::fs::StatVfs) -> u64| {
            room.as_ref()
                .map_or(0, |room| blocks(room).saturating_mul(room.f_frsize))
        };
        let free = blocks(|room| room.f_bavail);
        let used = blocks(|room| room.f_blocks.saturating_sub(room.f_bfree));
        Self {
            file_bytes: bytes(file),
            log_bytes: bytes(&file.with_extension("db-wal")),
            // As df counts: what is kept for root is nobody's.
            size_bytes: used + free,
            free_bytes: free,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_is_that_of_the_files_and_of_their_file_system() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("runs.db");
        std::fs::write(&file, [0; 100]).expect("written");
        std::fs::write(folder.path().join("runs.db-wal"), [0; 7]).expect("written");
        let disk = Disk::of(&file);
        assert_eq!((disk.file_bytes, disk.log_bytes), (100, 7));
        assert!(disk.free_bytes > 0 && disk.free_bytes < disk.size_bytes, "{disk:?}");
    }

    #[test]
    fn a_file_that_is_gone_has_no_room() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(Disk::of(&folder.path().join("gone/runs.db")), Disk::default());
    }
}
