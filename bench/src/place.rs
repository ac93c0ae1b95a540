//! Where a measured system keeps its data.

use std::str::FromStr;
use std::sync::Arc;

use anyhow::bail;
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use tempfile::TempDir;
use workflow_runtime::OpenSettings;

use crate::bucket::{Bucket, Requests};

/// A kind of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// This process's memory.
    Memory,
    /// A local directory that survives a killed process.
    Directory,
    /// A local directory that survives a power cut.
    Fsync,
    /// A store in memory that is as slow as a bucket, and counts requests.
    Bucket,
}

/// A store of a kind. Its files go when it is dropped: keep it until the end of the measurement.
pub struct Place {
    pub store: Arc<dyn ObjectStore>,
    /// How this runtime opens it.
    pub settings: OpenSettings,
    dir: Option<TempDir>,
    bucket: Option<Arc<Bucket>>,
}

impl StoreKind {
    /// All of them, in the order of the report.
    pub const ALL: [Self; 4] = [Self::Memory, Self::Directory, Self::Fsync, Self::Bucket];

    /// How the command line and the report call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Directory => "directory",
            Self::Fsync => "fsync",
            Self::Bucket => "bucket",
        }
    }
}

impl FromStr for StoreKind {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> anyhow::Result<Self> {
        match Self::ALL.into_iter().find(|kind| kind.name() == name) {
            Some(kind) => Ok(kind),
            None => bail!("there is no store `{name}`"),
        }
    }
}

impl Place {
    /// An empty store; directories are made below `BENCH_DIR`, or where temporary files go.
    pub fn new(kind: StoreKind) -> anyhow::Result<Self> {
        let (settings, dir, bucket) = (OpenSettings::local(), None, None);
        match kind {
            StoreKind::Memory => Ok(Self { store: Arc::new(InMemory::new()), settings, dir, bucket }),
            StoreKind::Bucket => {
                let bucket = Arc::new(Bucket::new());
                Ok(Self { store: bucket.clone(), settings: OpenSettings::bucket(), dir, bucket: Some(bucket) })
            }
            StoreKind::Directory | StoreKind::Fsync => {
                let dir = match std::env::var_os("BENCH_DIR") {
                    Some(parent) => TempDir::new_in(parent)?,
                    None => TempDir::new()?,
                };
                let store = LocalFileSystem::new_with_prefix(dir.path())?.with_fsync(kind == StoreKind::Fsync);
                Ok(Self { store: Arc::new(store), settings, dir: Some(dir), bucket })
            }
        }
    }

    /// What was asked of the bucket so far, if it is one.
    pub fn requests(&self) -> Option<Requests> {
        self.bucket.as_ref().map(|bucket| bucket.requests())
    }

    /// The bytes and files that lie in the directory, if there is one.
    pub fn usage(&self) -> Option<(u64, u64)> {
        fn below(dir: &std::path::Path) -> (u64, u64) {
            let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
            entries.fold((0, 0), |(bytes, files), entry| match entry.metadata() {
                Ok(meta) if meta.is_dir() => {
                    let (more, of) = below(&entry.path());
                    (bytes + more, files + of)
                }
                Ok(meta) => (bytes + meta.len(), files + 1),
                Err(_) => (bytes, files),
            })
        }
        self.dir.as_ref().map(|dir| below(dir.path()))
    }
}
