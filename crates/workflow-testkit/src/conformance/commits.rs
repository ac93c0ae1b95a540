//! Commits: exact, whole, each on its own, and carried through whoever waits for them.

use bytes::Bytes;
use futures::future::join_all;
use workflow_effects::MAX_EFFECT_VALUE_LEN;
use workflow_runtime::port::{Commit, Read, Rejected};

use super::Subject;
use super::world::{World, deleting, eventually, expecting, give_up_after, ids, putting, ringing, soon};

/// Asserts that `answer` says that the commit can never succeed, and how.
fn assert_invalid(answer: &Result<(), Rejected>) {
    let Err(Rejected::Invalid(error)) = answer else { panic!("the commit is invalid, but was answered {answer:?}") };
    assert!(error.is_permanent(), "{error}");
}

/// "Changes that are applied together": puts, deletes, jobs. "A key without a value may be deleted."
pub async fn a_commit_changes_what_it_says_and_nothing_else<S: Subject>() {
    let world = World::<S>::new().await;
    assert!(world.port.commit(Vec::new()).await.is_empty());
    world.commit(Commit::default()).await.expect("an empty commit is applied");
    for (key, value) in [("kept", "old"), ("changed", "old"), ("gone", "old")] {
        world.put(key, value).await;
    }
    let job = world.port.next_job_id();
    let commit = Commit {
        puts: vec![("changed".into(), "new".into()), ("\0odd/\u{ff}".into(), Bytes::new())],
        deletes: vec!["gone".into(), "never there".into()],
        ..ringing(&job, None)
    };
    world.commit(commit).await.expect("a commit without expectations is applied");
    assert_eq!(world.latest("kept").await.as_deref(), Some(&b"old"[..]));
    assert_eq!(world.latest("changed").await.as_deref(), Some(&b"new"[..]));
    assert_eq!(world.latest("\0odd/\u{ff}").await, Some(Bytes::new()), "an empty value is a value");
    assert_eq!(world.latest("gone").await, None);
    assert_eq!(world.latest("never there").await, None);
    assert_eq!(world.claim_one().await.job, job);
}

/// "The expectations of a commit hold at the moment it is applied."
pub async fn of_commits_that_expect_the_same_bytes_one_wins<S: Subject>() {
    let world = World::<S>::new().await;
    let mut before: Option<String> = None;
    for round in 0..20 {
        let rivals = (0..8).map(|rival| {
            let commit = putting("slot", format!("{round}/{rival}"));
            world.commit(expecting("slot", before.as_deref(), commit))
        });
        let answers = join_all(rivals).await;
        let winners: Vec<_> = (0..8).filter(|rival| answers[*rival].is_ok()).collect();
        let [winner] = winners[..] else { panic!("one wins, but in round {round} {winners:?} did") };
        assert!(answers.iter().all(|answer| matches!(answer, Ok(()) | Err(Rejected::Conflict))), "{answers:?}");
        let value = format!("{round}/{winner}");
        assert_eq!(world.latest("slot").await.as_deref(), Some(value.as_bytes()));
        before = Some(value);
    }
}

/// "An expectation does not hold. Nothing was written."
pub async fn a_commit_that_expects_other_bytes_changes_nothing<S: Subject>() {
    let world = World::<S>::new().await;
    world.put("slot", "old").await;
    world.put("empty", "").await;
    world.put("other", "old").await;
    for (key, expected) in [
        ("slot", None),
        ("slot", Some("")),
        ("slot", Some("older")),
        ("slot", Some("ol")),
        ("absent", Some("old")),
        ("absent", Some("")),
        ("empty", None),
    ] {
        for change in [putting(key, "new"), deleting(key)] {
            let mut commit = expecting(key, expected, change);
            commit.expect.extend(expecting("other", Some("old"), Commit::default()).expect);
            commit.deletes.push("other".into());
            commit.enqueues = ringing(&world.port.next_job_id(), None).enqueues;
            let answer = world.commit(commit).await;
            assert!(matches!(answer, Err(Rejected::Conflict)), "{key} is not {expected:?}, but {answer:?}");
        }
    }
    assert_eq!(world.latest("slot").await.as_deref(), Some(&b"old"[..]));
    assert_eq!(world.latest("empty").await.as_deref(), Some(&b""[..]));
    assert_eq!(world.latest("other").await.as_deref(), Some(&b"old"[..]));
    assert_eq!(world.latest("absent").await, None);
    world.assert_no_job().await;
    for (key, expected) in [("slot", Some("old")), ("empty", Some("")), ("absent", None)] {
        world.commit(expecting(key, expected, deleting(key))).await.expect("what it expects is there");
        assert_eq!(world.latest(key).await, None);
    }
}

/// "Each is also put or deleted." "Implementations of the port call this first."
pub async fn a_commit_that_breaks_a_rule_is_invalid_and_changes_nothing<S: Subject>() {
    let world = World::<S>::new().await;
    let job = world.port.next_job_id();
    let sound = Commit { puts: putting("other", "new").puts, ..ringing(&job, None) };
    let twice = || vec![("slot".into(), "1".into()), ("slot".into(), "2".into())];
    for commit in [
        Commit { expect: vec![("slot".into(), None)], ..sound.clone() },
        Commit { puts: twice(), ..sound.clone() },
        Commit { deletes: vec!["slot".into(), "slot".into()], ..sound.clone() },
        Commit { deletes: vec!["other".into()], ..sound.clone() },
        Commit { expect: vec![("other".into(), None), ("other".into(), None)], ..sound.clone() },
    ] {
        assert_invalid(&world.commit(commit).await);
    }
    assert_eq!(world.latest("slot").await, None);
    assert_eq!(world.latest("other").await, None);
    world.assert_no_job().await;
    world.commit(sound).await.expect("its job is still not there");
}

/// Values "of at most `MAX_EFFECT_VALUE_LEN` bytes".
pub async fn a_value_may_be_as_long_as_a_value_may_be_and_no_longer<S: Subject>() {
    let world = World::<S>::new().await;
    let longest = vec![7; MAX_EFFECT_VALUE_LEN];
    world.commit(putting("longest", longest.clone())).await.expect("it is not too long");
    assert_eq!(world.latest("longest").await.as_deref(), Some(&longest[..]));
    let mut commit = putting("longer", vec![7; MAX_EFFECT_VALUE_LEN + 1]);
    commit.puts.extend(putting("small", "new").puts);
    assert_invalid(&world.commit(commit).await);
    assert_eq!(world.latest("longer").await, None);
    assert_eq!(world.latest("small").await, None);
}

/// "No job that is there has it: waiting, claimed or dead."
pub async fn a_commit_with_a_job_id_that_is_taken_is_invalid_and_changes_nothing<S: Subject>() {
    let world = World::<S>::new().await;
    let dead = world.ring(None).await;
    world.bury(&world.claim_one().await.claim).await;
    let claimed = world.ring(None).await;
    let held = world.claim_one().await;
    let (waiting, fresh) = (world.ring(None).await, world.port.next_job_id());
    for taken in [&dead, &claimed, &waiting, &fresh] {
        let mut commit = ringing(&fresh, None);
        commit.enqueues.extend(ringing(taken, None).enqueues);
        commit.puts = putting("slot", "new").puts;
        assert_invalid(&world.commit(commit).await);
    }
    assert_eq!(world.latest("slot").await, None);
    assert_eq!(ids(&world.claim(9).await), [waiting]);
    assert_eq!(world.dead().await, [dead]);
    world.ack(&held.claim).await;
    world.commit(ringing(&fresh, None)).await.expect("the id was never taken");
}

/// "So is a commit answered that was applied before, although its jobs are there already."
pub async fn a_stale_commit_is_a_conflict_even_if_its_jobs_are_there_already<S: Subject>() {
    let world = World::<S>::new().await;
    let job = world.port.next_job_id();
    let commit = expecting("slot", None, Commit { puts: putting("slot", "new").puts, ..ringing(&job, None) });
    world.commit(commit.clone()).await.expect("what it expects is there");
    let again = world.commit(commit).await;
    assert!(matches!(again, Err(Rejected::Conflict)), "{again:?}");
    assert_eq!(world.claim_one().await.job, job);
}

/// "Applies commits, each on its own; the answers are in the order of `commits`."
pub async fn each_commit_of_a_call_is_answered_on_its_own_and_in_order<S: Subject>() {
    let world = World::<S>::new().await;
    let commits = vec![
        putting("a", "new"),
        expecting("b", Some("never there"), putting("b", "new")),
        expecting("c", None, putting("other", "new")),
        putting("d", "new"),
    ];
    let answers = world.port.commit(commits).await;
    let as_expected = matches!(answers[..], [Ok(()), Err(Rejected::Conflict), Err(Rejected::Invalid(_)), Ok(())]);
    assert!(as_expected, "{answers:?}");
    for (key, there) in [("a", true), ("b", false), ("c", false), ("other", false), ("d", true)] {
        assert_eq!(world.latest(key).await.is_some(), there, "{key}");
    }
    let many: Vec<_> = (0..100).map(|number| putting(format!("many/{number}"), "new")).collect();
    assert!(world.port.commit(many).await.iter().all(Result::is_ok));
}

/// "A commit that has been handed over runs to its end, whatever becomes of the future that waits for it."
pub async fn a_commit_whose_caller_gives_up_after_any_poll_is_whole_or_was_never_begun<S: Subject>() {
    for polls in 0..6 {
        let world = World::<S>::new().await;
        // The queue has been found empty, so a claim looks again only when it is told of the job.
        world.assert_no_job().await;
        let jobs = [world.port.next_job_id(), world.port.next_job_id()];
        let commits = [("one", &jobs[0]), ("two", &jobs[1])]
            .map(|(key, job)| Commit { puts: putting(key, "new").puts, ..ringing(job, None) });
        // It cannot end under the polls.
        world.subject.hold();
        give_up_after(polls, world.port.commit(commits.to_vec())).await;
        world.subject.release();
        if polls == 0 {
            world.ring(None).await;
            assert_eq!(world.latest("one").await, None, "it was never begun");
            assert!(!jobs.contains(&world.claim_one().await.job));
            continue;
        }
        let mut claimed = Vec::new();
        while claimed.len() < 2 {
            claimed.push(eventually(async || world.claim(1).await.pop()).await);
        }
        assert_eq!(ids(&claimed), jobs);
        for key in ["one", "two"] {
            let value = soon(world.get(key, Read::Durable)).await;
            assert_eq!(value.as_deref(), Some(&b"new"[..]), "{key}, given up after {polls} polls");
        }
    }
}
