//! A store in memory that is as slow as a bucket, and counts what a bucket sends bills for.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions,
    PutOptions, PutPayload, PutResult, Result, UploadPart,
};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

/// The least and the most that a write takes, in milliseconds.
const WRITE_MS: [u64; 2] = [20, 60];
/// The same of everything else.
const READ_MS: [u64; 2] = [10, 30];
/// Every bucket is slow in the same order.
const SEED: u64 = 1;

/// The store.
#[derive(Debug)]
pub struct Bucket {
    objects: InMemory,
    counter: Counter,
}

/// An upload in parts.
#[derive(Debug)]
struct Upload {
    upload: Box<dyn MultipartUpload>,
    counter: Counter,
}

/// Makes requests slow, and counts them.
#[derive(Clone, Debug)]
struct Counter(Arc<Counted>);

#[derive(Debug)]
struct Counted {
    chance: Mutex<SmallRng>,
    puts: AtomicU64,
    gets: AtomicU64,
    lists: AtomicU64,
    deletes: AtomicU64,
    put_bytes: AtomicU64,
    got_bytes: AtomicU64,
}

/// How many requests there were of each kind, and how many bytes went to the bucket and came from it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Requests {
    /// Parts and ends of large uploads, and copies, too.
    pub puts: f64,
    /// Those of an object's size alone, too.
    pub gets: f64,
    pub lists: f64,
    /// One for each object. Buckets charge nothing for them.
    pub deletes: f64,
    pub put_bytes: f64,
    pub got_bytes: f64,
}

impl Requests {
    /// All that is charged.
    pub fn charged(&self) -> f64 {
        self.puts + self.gets + self.lists
    }

    /// What came after `before`, per thousand of `steps`.
    pub fn per_1000(&self, before: &Self, steps: f64) -> Self {
        let per_1000 = |now: f64, before: f64| (now - before) * 1e3 / steps;
        Self {
            puts: per_1000(self.puts, before.puts),
            gets: per_1000(self.gets, before.gets),
            lists: per_1000(self.lists, before.lists),
            deletes: per_1000(self.deletes, before.deletes),
            put_bytes: per_1000(self.put_bytes, before.put_bytes),
            got_bytes: per_1000(self.got_bytes, before.got_bytes),
        }
    }
}

impl Bucket {
    /// An empty one.
    pub fn new() -> Self {
        let counted = Counted {
            chance: Mutex::new(SmallRng::seed_from_u64(SEED)),
            puts: AtomicU64::new(0),
            gets: AtomicU64::new(0),
            lists: AtomicU64::new(0),
            deletes: AtomicU64::new(0),
            put_bytes: AtomicU64::new(0),
            got_bytes: AtomicU64::new(0),
        };
        Self { objects: InMemory::new(), counter: Counter(Arc::new(counted)) }
    }

    /// What was asked of it so far.
    pub fn requests(&self) -> Requests {
        let read = |counted: &AtomicU64| counted.load(Ordering::Relaxed) as f64;
        let counted = &self.counter.0;
        Requests {
            puts: read(&counted.puts),
            gets: read(&counted.gets),
            lists: read(&counted.lists),
            deletes: read(&counted.deletes),
            put_bytes: read(&counted.put_bytes),
            got_bytes: read(&counted.got_bytes),
        }
    }

    /// What a listing finds, which comes in one page.
    fn listed(&self, found: BoxStream<'static, Result<ObjectMeta>>) -> BoxStream<'static, Result<ObjectMeta>> {
        let counter = self.counter.clone();
        let answer = async move {
            counter.request(&counter.0.lists, READ_MS).await;
            found
        };
        stream::once(answer).flatten().boxed()
    }
}

impl Counter {
    async fn put(&self, bytes: usize) {
        self.0.put_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.request(&self.0.puts, WRITE_MS).await;
    }

    async fn request(&self, counted: &AtomicU64, [least, most]: [u64; 2]) {
        counted.fetch_add(1, Ordering::Relaxed);
        let ms = self.0.chance.lock().unwrap_or_else(PoisonError::into_inner).random_range(least..=most);
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bucket")
    }
}

#[async_trait]
impl ObjectStore for Bucket {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.counter.put(payload.content_length()).await;
        self.objects.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.counter.put(0).await;
        let upload = self.objects.put_multipart_opts(location, options).await?;
        Ok(Box::new(Upload { upload, counter: self.counter.clone() }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let head = options.head;
        self.counter.request(&self.counter.0.gets, READ_MS).await;
        let result = self.objects.get_opts(location, options).await?;
        let bytes = if head { 0 } else { result.range.end - result.range.start };
        self.counter.0.got_bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(result)
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let counter = self.counter.clone();
        let slow = locations.then(move |location| {
            let counter = counter.clone();
            async move {
                counter.request(&counter.0.deletes, READ_MS).await;
                location
            }
        });
        self.objects.delete_stream(slow.boxed())
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.listed(self.objects.list(prefix))
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        self.listed(self.objects.list_with_offset(prefix, offset))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.counter.request(&self.counter.0.lists, READ_MS).await;
        self.objects.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.counter.put(0).await;
        self.objects.copy_opts(from, to, options).await
    }
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let (counter, bytes) = (self.counter.clone(), data.content_length());
        let part = self.upload.put_part(data);
        async move {
            counter.put(bytes).await;
            part.await
        }
        .boxed()
    }

    async fn complete(&mut self) -> Result<PutResult> {
        self.counter.put(0).await;
        self.upload.complete().await
    }

    async fn abort(&mut self) -> Result<()> {
        self.upload.abort().await
    }
}
