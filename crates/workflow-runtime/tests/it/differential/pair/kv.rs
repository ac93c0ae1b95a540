//! Commits, reads and waits for a change.

use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use workflow_runtime::port::{Commit, Enqueue, Read, Rejected, ScanOrder, ScanRange, Timestamp};
use workflow_runtime::{MAX_EFFECT_VALUE_LEN, QueuePort};

use super::super::operation::{Change, Due, Flaw, NewJob};
use super::{Compared, MOMENT, Pair, QUEUES};

const KEYS: [&str; 4] = ["k/a", "k/a/1", "k/a/2", "k/b"];
const PREFIXES: [&str; 3] = ["k", "k/a", "k/a/"];

impl Pair {
    pub(super) async fn commit(&mut self, change: &Change) -> Compared {
        let commit = self.build(change).await;
        let calls = self.ports.clone().map(|port| commit_on(port, commit.clone()));
        let answer = self.call("a commit", calls).await?;
        self.happened.extend(match answer.as_str() {
            "ok" => Some("commit: ok"),
            "conflict" => Some("commit: conflict"),
            "invalid" => Some("commit: invalid"),
            _ => None,
        });
        Ok(())
    }

    async fn build(&mut self, change: &Change) -> Commit {
        let key = Bytes::from(KEYS[change.key]);
        let mut commit = Commit::default();
        match change.value {
            Some(value) => commit.puts.push((key.clone(), bytes(value))),
            None => commit.deletes.push(key.clone()),
        }
        commit.deletes.extend(change.deleted.map(|key| Bytes::from(KEYS[key])));
        if let Some(right) = change.expects_right {
            let there = self.ports[0].get(&key, Read::Latest).await.expect("an open store answers a read");
            let other = if there.is_some() { None } else { Some(bytes(9)) };
            commit.expect.push((key.clone(), if right { there } else { other }));
        }
        commit.enqueues.extend(change.job.as_ref().map(|job| self.enqueue(job)));
        match change.flaw {
            Some(Flaw::WritesTwice) => commit.deletes.push(key),
            Some(Flaw::ExpectsWithoutWriting) => commit.expect.push(("k/c".into(), None)),
            Some(Flaw::PutsTooMuch) => commit.puts.push(("k/c".into(), vec![0; MAX_EFFECT_VALUE_LEN + 1].into())),
            None => {}
        }
        commit
    }

    fn enqueue(&mut self, new: &NewJob) -> Enqueue {
        let again = new.again.filter(|_| !self.jobs.is_empty());
        let job = match again {
            Some(again) => self.jobs[again % self.jobs.len()].clone(),
            None => self.ports[1].next_job_id(),
        };
        self.jobs.push(job.clone());
        self.has_unseen_jobs |= self.in_flight.is_some();
        let due = new.due.map(|due| match due {
            Due::Already => Timestamp::from_millis(1),
            Due::In { ticks } => self.due(ticks),
        });
        let payload = format!("job {}", self.jobs.len()).into();
        Enqueue { queue: QUEUES[new.queue].to_owned(), job, payload, due }
    }

    pub(super) async fn get(&mut self, key: usize, read: Read) -> Compared {
        let calls = self.ports.clone().map(|port| {
            let get = async move { port.get(KEYS[key].as_bytes(), read).await.expect("an open store answers a read") };
            get.map(|value| value.map_or("none".to_owned(), |value| format!("{value:?}"))).boxed()
        });
        let answer = self.call("a read", calls).await?;
        self.happened.insert(if answer == "none" { "get: none" } else { "get: some" });
        Ok(())
    }

    pub(super) async fn scan(&mut self, range: ScanRange, read: Read) -> Compared {
        // A scan of nothing may wait for what it does not read.
        let read = if range.limit == 0 { Read::Latest } else { read };
        let calls = self.ports.clone().map(|port| {
            let range = range.clone();
            async move {
                let page = port.scan(&range, read).await.expect("an open store answers a scan");
                format!("{:?}, more: {}", page.entries, page.more)
            }
            .boxed()
        });
        let answer = self.call("a scan", calls).await?;
        let is_descending = range.order == ScanOrder::Descending;
        let what = match answer.as_str() {
            more if more.ends_with("true") && is_descending => "scan: more, backwards",
            more if more.ends_with("true") => "scan: more",
            "[], more: false" => "scan: none",
            _ => "scan: all",
        };
        self.happened.insert(what);
        Ok(())
    }

    pub(super) async fn wait_for_change(&mut self, key: usize, seen: Option<u8>) -> Compared {
        let seen = seen.map(bytes);
        let calls = self.ports.clone().map(|port| {
            let seen = seen.clone();
            async move {
                let change = port.wait_for_change(KEYS[key].as_bytes(), seen.as_ref());
                match tokio::time::timeout(MOMENT / 2, change).await {
                    Ok(changed) => format!("{:?}", changed.expect("an open store answers a read")),
                    Err(_) => "waits".to_owned(),
                }
            }
            .boxed()
        });
        let answer = self.call("a wait for a change", calls).await?;
        self.happened.insert(if answer == "waits" { "change: waits" } else { "change: seen" });
        Ok(())
    }
}

pub(super) fn range(prefix: usize, after: Option<usize>, limit: usize) -> ScanRange {
    let after = after.map(|after| Bytes::from(KEYS[after]));
    ScanRange { after, ..ScanRange::first(PREFIXES[prefix], limit) }
}

fn bytes(value: u8) -> Bytes {
    format!("value {value}").into()
}

fn commit_on(port: Arc<dyn QueuePort>, commit: Commit) -> BoxFuture<'static, String> {
    let answer = async move {
        match port.commit(vec![commit]).await.pop().expect("every commit is answered") {
            Ok(()) => "ok".to_owned(),
            Err(Rejected::Conflict) => "conflict".to_owned(),
            Err(Rejected::Invalid(_)) => "invalid".to_owned(),
            Err(Rejected::Unknown(error)) if error.is_closed() => "taken over".to_owned(),
            Err(Rejected::Unknown(error)) => format!("unknown: {error}"),
        }
    };
    answer.boxed()
}

/// A commit by whoever has lost the store.
pub(super) fn late_commit(port: Arc<dyn QueuePort>) -> BoxFuture<'static, String> {
    commit_on(port, Commit { puts: vec![("k/late".into(), "late".into())], ..Commit::default() })
}
