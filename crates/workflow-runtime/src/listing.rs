//! Listing runs: by state, by time, by header, in pages, while they come and go.

use std::future::ready;
use std::time::SystemTime;

use futures::{Stream, StreamExt, TryStreamExt, stream};
use workflow_core::{Run, Timestamp};
use workflow_effects::{Index, IndexEntry, Read, ScanOrder, ScanRange};

use crate::reads::RunReads;
use crate::spec::header_hash;
use crate::views::{RunState, RunStatus};
use crate::{Error, Result};

/// Places in an index that are read at once.
const PAGE: usize = 256;
/// Runs that are read at the same time.
const AT_A_TIME: usize = 16;

/// Which runs are listed or counted. The default is all; write `..RunFilter::default()`, for fields may be added.
///
/// A header, a state and a time are each looked up in an index, so that a listing reads the runs that it tells of.
/// Where several are asked for, the first of these that is named is looked up, and the others are compared run by run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Runs with this header: its name, and its whole value.
    pub header: Option<(String, String)>,
    /// Runs in this state.
    pub state: Option<RunState>,
    /// Runs that are in their state since this time or a later one.
    pub since: Option<SystemTime>,
    /// Runs that are in their state since before this time.
    pub since_before: Option<SystemTime>,
    /// Runs that were submitted at this time or later.
    pub submitted: Option<SystemTime>,
    /// Runs that were submitted before this time.
    pub submitted_before: Option<SystemTime>,
}

/// The order of a listing: by the time since when the runs are in the state that the filter names; by the time of their
/// submission where it names none, or a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunOrder {
    /// The oldest time first.
    OldestFirst,
    /// The latest time first.
    #[default]
    NewestFirst,
}

/// A filter that is ready to be compared with.
struct Parsed {
    header: Option<(String, String)>,
    state: Option<RunState>,
    since: Times,
    submitted: Times,
}

/// What is read of an index.
struct Section {
    index: Index,
    times: Times,
    order: RunOrder,
}

impl RunReads {
    /// The runs that `filter` takes, as they are seen at `now`. A run that does not read is an error in its place, and
    /// the listing goes on.
    pub(crate) fn runs(
        self,
        filter: RunFilter,
        order: RunOrder,
        now: Timestamp,
    ) -> impl Stream<Item = Result<RunStatus>> + Send + use<> {
        let filter = Parsed::from(filter);
        let section = filter.section(order);
        let (reads, index) = (self.clone(), section.index);
        let listed = self.entries(section).map(move |entry| {
            let reads = reads.clone();
            async move { reads.listed(index, entry?, now).await }
        });
        listed.buffered(AT_A_TIME).try_filter_map(move |run| ready(Ok(run.filter(|run| filter.takes(run)))))
    }

    /// How many runs `filter` takes.
    pub(crate) async fn count(self, filter: RunFilter, now: Timestamp) -> Result<u64> {
        let parsed = Parsed::from(filter.clone());
        if parsed.is_told_by_its_index() {
            let entries = self.entries(parsed.section(RunOrder::OldestFirst));
            return entries.try_fold(0, |count, _| ready(Ok(count + 1))).await;
        }
        let runs = self.runs(filter, RunOrder::OldestFirst, now);
        // What does not read cannot be compared.
        let readable = runs.filter(|run| ready(!matches!(run, Err(error) if error.is_permanent())));
        readable.try_fold(0, |count, _| ready(Ok(count + 1))).await
    }

    /// The entries of a section of an index, page by page.
    fn entries(self, section: Section) -> impl Stream<Item = Result<IndexEntry>> + Send + use<> {
        let rows = self.pages(section.range(&self), Read::Durable);
        let pages = stream::try_unfold((self, section, Some(rows)), |(reads, section, rows)| async move {
            let Some(mut rows) = rows else { return Ok::<_, Error>(None) };
            let Some(page) = rows.next().await? else { return Ok(None) };
            let entries = page.iter().filter_map(|(key, _)| reads.keys.parse_indexed(section.index, key));
            let within: Vec<_> = entries.take_while(|entry| section.times.contain(entry.at)).map(Ok).collect();
            let rest = (within.len() == page.len()).then_some(rows);
            Ok(Some((stream::iter(within), (reads, section, rest))))
        });
        pages.try_flatten()
    }

    /// The run at a place in an index, unless it has left it meanwhile.
    async fn listed(&self, index: Index, entry: IndexEntry, now: Timestamp) -> Result<Option<RunStatus>> {
        let gathered = self.gather(&entry.run_id, Read::Durable).await?;
        if !is_at(&gathered.run, index, &entry) {
            return Ok(None);
        }
        match self.status_of(&entry.run_id, &gathered.run, now).await {
            // Removed meanwhile, with what it was submitted with.
            Err(error) if error.is_permanent() => {
                let again = self.gather(&entry.run_id, Read::Durable).await?;
                if again.record == gathered.record { Err(error) } else { Ok(None) }
            }
            status => status,
        }
    }
}

/// Whether `run` has its place in `index` at `entry`.
pub(crate) fn is_at(run: &Run, index: Index, entry: &IndexEntry) -> bool {
    let is_in_state = match index {
        Index::State(state) => run.state() == Some((state, entry.at)),
        Index::Submitted | Index::Header(_) => true,
    };
    is_in_state && run.incarnation() == Some(entry.incarnation)
}

/// A stretch of time, without an end if it has none.
#[derive(Clone, Copy)]
struct Times {
    from: Timestamp,
    before: Option<Timestamp>,
}

impl Times {
    fn new(from: Option<SystemTime>, before: Option<SystemTime>) -> Self {
        let from = from.map_or(Timestamp::from_millis(0), Timestamp::from);
        Self { from, before: before.map(Timestamp::from) }
    }

    fn are_all(self) -> bool {
        self.from == Timestamp::from_millis(0) && self.before.is_none()
    }

    fn contain(self, at: Timestamp) -> bool {
        self.from <= at && self.before.is_none_or(|before| at < before)
    }

    fn no_earlier_than(self, from: Timestamp) -> Self {
        Self { from: self.from.max(from), ..self }
    }

    fn no_later_than(self, before: Option<Timestamp>) -> Self {
        Self { before: [self.before, before].into_iter().flatten().min(), ..self }
    }
}

impl From<RunFilter> for Parsed {
    fn from(filter: RunFilter) -> Self {
        Self {
            since: Times::new(filter.since, filter.since_before),
            submitted: Times::new(filter.submitted, filter.submitted_before),
            header: filter.header,
            state: filter.state,
        }
    }
}

impl Parsed {
    /// What is read of which index. No run is in its state since before its submission.
    fn section(&self, order: RunOrder) -> Section {
        let (index, times) = match (&self.header, self.state) {
            (Some((name, value)), _) => {
                (Index::Header(header_hash(name, value)), self.submitted.no_later_than(self.since.before))
            }
            // At the beginning of time are the runs whose records are gone.
            (None, Some(state)) => {
                let earliest = self.submitted.from.max(Timestamp::from_millis(1));
                (Index::State(state.into()), self.since.no_earlier_than(earliest))
            }
            (None, None) => (Index::Submitted, self.submitted.no_later_than(self.since.before)),
        };
        Section { index, times, order }
    }

    /// Whether every run in the section is taken.
    fn is_told_by_its_index(&self) -> bool {
        match (&self.header, self.state) {
            (Some(_), Some(_)) => false,
            (Some(_), None) | (None, None) => self.since.are_all(),
            (None, Some(_)) => self.submitted.are_all(),
        }
    }

    fn takes(&self, run: &RunStatus) -> bool {
        let has_header = |(name, value): &(String, String)| run.headers.get(name) == Some(value);
        self.header.as_ref().is_none_or(has_header)
            && self.state.is_none_or(|state| run.state == state)
            && self.since.contain(run.since.into())
            && self.submitted.contain(run.submitted_at.into())
    }
}

impl Section {
    fn range(&self, reads: &RunReads) -> ScanRange {
        let from = |at| reads.keys.index_from(self.index, at);
        let (after, order) = match self.order {
            RunOrder::OldestFirst => (Some(from(self.times.from)), ScanOrder::Ascending),
            RunOrder::NewestFirst => (self.times.before.map(from), ScanOrder::Descending),
        };
        ScanRange { after, order, ..ScanRange::first(reads.keys.index_prefix(self.index), PAGE) }
    }
}
