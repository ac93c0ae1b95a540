//! Scans that go on from page to page, for whoever reads more than one page and must not hold it all.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::Result;
use crate::port::{KvStore, Read, ScanRange};

/// The entries of a range, a page after the other. It holds nothing but where it stands. Commits made between two pages
/// may be seen in part.
///
/// ```
/// use std::sync::Arc;
///
/// use workflow_effects::{MemoryKv, Pages, Read, ScanRange};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> workflow_effects::Result<()> {
/// let kv = Arc::new(MemoryKv::with_entries([("p/a", "1"), ("p/b", "2"), ("p/c", "3"), ("q", "4")]));
/// let mut pages = Pages::new(kv, ScanRange::first("p/", 2), Read::Latest);
/// let mut lengths = Vec::new();
/// while let Some(entries) = pages.next().await? {
///     lengths.push(entries.len());
/// }
/// assert_eq!(lengths, [2, 1]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Pages {
    kv: Arc<dyn KvStore>,
    read: Read,
    /// What the next page is the beginning of; `None` after the last.
    rest: Option<ScanRange>,
}

impl Pages {
    /// The entries of `range` in `kv`, at most its limit on a page.
    pub fn new(kv: Arc<dyn KvStore>, range: ScanRange, read: Read) -> Self {
        Self { kv, read, rest: Some(range) }
    }

    /// The entries of the next page; `None` after the last. The first page is there even if it is empty. Dropping the
    /// future leaves the page for the next call.
    ///
    /// # Errors
    ///
    /// What [`KvStore::scan`] answers. The next call asks for the same page again.
    pub async fn next(&mut self) -> Result<Option<Vec<(Bytes, Bytes)>>> {
        let Some(range) = &mut self.rest else { return Ok(None) };
        let page = self.kv.scan(range, self.read).await?;
        match page.entries.last() {
            Some((last, _)) if page.more => range.after = Some(last.clone()),
            _ => self.rest = None,
        }
        Ok(Some(page.entries))
    }

    /// Goes on beyond `key`, which lies beyond what was read.
    pub fn skip_to(&mut self, key: impl Into<Bytes>) {
        if let Some(rest) = &mut self.rest {
            rest.after = Some(key.into());
        }
    }
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages").field("read", &self.read).field("rest", &self.rest).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryKv;
    use crate::port::ScanOrder;

    fn pages(range: ScanRange) -> Pages {
        let kv = MemoryKv::with_entries(["o", "p/a", "p/b", "p/c", "p/d", "q"].map(|key| (key, "")));
        Pages::new(Arc::new(kv), range, Read::Latest)
    }

    async fn check(mut pages: Pages, expected: &[&[&str]]) {
        let mut found = Vec::new();
        while let Some(entries) = pages.next().await.unwrap() {
            found.push(entries.into_iter().map(|(key, _)| key).collect::<Vec<_>>());
        }
        assert_eq!(found, expected);
        assert_eq!(pages.next().await.unwrap(), None);
    }

    #[tokio::test]
    async fn every_entry_is_on_one_page() {
        check(pages(ScanRange::first("p/", 4)), &[&["p/a", "p/b", "p/c", "p/d"]]).await;
        check(pages(ScanRange::first("p/", 3)), &[&["p/a", "p/b", "p/c"], &["p/d"]]).await;
        check(pages(ScanRange::first("p/", 2)), &[&["p/a", "p/b"], &["p/c", "p/d"]]).await;
        let after = Some("p/b".into());
        check(pages(ScanRange { after, ..ScanRange::first("p/", 1) }), &[&["p/c"], &["p/d"]]).await;
        let order = ScanOrder::Descending;
        check(pages(ScanRange { order, ..ScanRange::first("p/", 3) }), &[&["p/d", "p/c", "p/b"], &["p/a"]]).await;
    }

    #[tokio::test]
    async fn of_nothing_there_is_one_empty_page() {
        check(pages(ScanRange::first("r", 3)), &[&[]]).await;
        check(pages(ScanRange::first("p/", 0)), &[&[]]).await;
    }

    #[tokio::test]
    async fn what_is_skipped_is_not_read() {
        let mut some = pages(ScanRange::first("p/", 1));
        assert_eq!(some.next().await.unwrap().unwrap()[0].0, "p/a");
        some.skip_to("p/c");
        check(some.clone(), &[&["p/d"]]).await;
        some.skip_to("p/d");
        check(some.clone(), &[&[]]).await;
        // There is nothing beyond the end.
        let mut all = pages(ScanRange::first("p/", 9));
        all.next().await.unwrap();
        all.skip_to("o");
        check(all, &[]).await;
    }
}
