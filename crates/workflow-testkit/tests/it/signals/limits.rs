//! Bad input: a typed error of the call or step that supplied it, with nothing written.

use std::time::Duration;

use workflow_runtime::{
    EffectsError, Error, MAX_CORRELATION_KEY_LEN, MAX_SIGNAL_ID_LEN, MAX_WAIT_KEYS, SignalOptions, SignalOutcome,
    StepOutcome, TerminalStatus,
};

use crate::scripted::{RUN, Scripted, World, result_of, submit, until_it_waits};

/// A signal that is refused leaves nothing behind.
async fn check_refused(key: &str, payload: usize, id: Option<String>, is_expected: impl Fn(&Error) -> bool) {
    let world = World::without_hook(Scripted::waits_for(&["k"], Duration::MAX)).with(|s| s.max_value_size = 100);
    let sent = world.runtime().signal_with(key, vec![7; payload], SignalOptions { id }).await;
    let error = sent.unwrap_err();
    assert!(is_expected(&error) && error.is_permanent(), "{error:?}");
    assert!(world.disk.entries().is_empty() && world.objects().await == 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_beyond_a_limit_is_refused_and_writes_nothing() {
    let is_key = |error: &Error| matches!(error, Error::InvalidCorrelationKey { .. });
    check_refused("", 1, None, is_key).await;
    check_refused(&"k".repeat(MAX_CORRELATION_KEY_LEN + 1), 1, None, is_key).await;
    check_refused(&"é".repeat(MAX_CORRELATION_KEY_LEN / 2 + 1), 1, None, is_key).await;
    let is_id = |error: &Error| matches!(error, Error::InvalidOption { option: "id", .. });
    check_refused("k", 1, Some(String::new()), is_id).await;
    check_refused("k", 1, Some("i".repeat(MAX_SIGNAL_ID_LEN + 1)), is_id).await;
    check_refused("the-key", 101, None, |error| {
        let is_size = matches!(error, Error::Effects(EffectsError::ValueTooLarge { len: 101, max: 100, .. }));
        is_size && error.to_string().contains("the-key")
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_is_at_a_limit_is_taken() {
    let key = "k".repeat(MAX_CORRELATION_KEY_LEN);
    let world = World::without_hook(Scripted::waits_for(&[&key], Duration::MAX))
        .with(|s| (s.max_value_size, s.inline_limit) = (2_000, 2_000));
    let (runtime, _running) = world.running();
    let id = Some("i".repeat(MAX_SIGNAL_ID_LEN));
    let sent = runtime.signal_with(&key, vec![b'x'; 500], SignalOptions { id }).await.unwrap();
    assert_eq!(sent, SignalOutcome::Buffered);
    submit(&runtime, RUN).await;
    assert_eq!(result_of(&runtime, RUN).await, format!("{key}={}", "x".repeat(500)));
    assert_eq!(
        runtime.clear_signal("").await.unwrap_err().to_string(),
        runtime.signal("", Vec::new()).await.unwrap_err().to_string()
    );
}

#[tokio::test(start_paused = true)]
async fn keys_are_any_text_and_none_is_taken_for_another() {
    let keys = ["a", "a/", "/a", "a\0", "\0", "A", "\u{430}", "e\u{301}", "é", "a/b", "a%2Fb", "..", "signal-item/a"];
    let world = World::without_hook(Scripted::new(|step| async move {
        Ok(match step.step_number {
            0 => {
                let key = String::from_utf8(step.payload.clone()).unwrap();
                StepOutcome::continue_on_signal(step.payload, key, Duration::MAX)
            }
            _ => StepOutcome::Succeed { result: step.signal.unwrap_or_default() },
        })
    }));
    let (runtime, _running) = world.running();
    for (number, key) in keys.iter().enumerate() {
        let run_id = Some(format!("run-{number}"));
        let input = key.as_bytes().to_vec();
        runtime.submit(workflow_runtime::RunSpec { run_id, input, ..Default::default() }).await.unwrap();
        until_it_waits(&runtime, &format!("run-{number}")).await;
    }
    for (number, key) in keys.iter().enumerate().rev() {
        let sent = runtime.signal(key, number.to_string().into()).await.unwrap();
        assert_eq!(sent, SignalOutcome::Delivered, "{key:?}");
        assert_eq!(runtime.signal(key, b"later".to_vec()).await.unwrap(), SignalOutcome::Buffered, "{key:?}");
    }
    for number in 0..keys.len() {
        assert_eq!(result_of(&runtime, &format!("run-{number}")).await, number.to_string());
    }
    for key in keys {
        assert_eq!(runtime.clear_signal(key).await.unwrap(), 1, "{key:?}");
    }
}

/// A wait that breaks a limit fails its step once and for good, and registers nothing.
async fn check_wait(keys: Vec<String>, problem: &str) {
    let asked = keys.clone();
    let runner = Scripted::new(move |step| {
        let keys = asked.clone();
        async move {
            step.effects.put("mark", "")?;
            Ok(StepOutcome::continue_on_any_signal(Vec::new(), keys, Duration::MAX))
        }
    });
    let world = World::without_hook(runner);
    let (runtime, running) = world.running();
    submit(&runtime, RUN).await;
    let end = runtime.wait(RUN).await.unwrap();
    assert_eq!((end.status, world.runner.seen().len()), (TerminalStatus::Failed, 1));
    assert!(end.error.as_deref().is_some_and(|error| error.contains(problem)), "{end:?}");
    assert_eq!(world.rows("signal"), 0);
    assert!(!world.disk.entries().iter().any(|(key, _)| key == "mark"));
    running.shutdown().await.unwrap();
    assert_eq!(world.disk.jobs().len(), 1, "a dead letter");
}

#[tokio::test(start_paused = true)]
async fn a_wait_beyond_a_limit_fails_its_step_for_good() {
    let numbered = |count: usize| (0..count).map(|number| number.to_string()).collect::<Vec<_>>();
    check_wait(Vec::new(), "1 to 16 correlation keys, not 0").await;
    check_wait(numbered(MAX_WAIT_KEYS + 1), "1 to 16 correlation keys, not 17").await;
    check_wait(vec!["a".to_owned(), "b".to_owned(), "a".to_owned()], "\"a\" more than once").await;
    check_wait(vec![String::new()], "must not be empty").await;
    check_wait(vec!["k".repeat(MAX_CORRELATION_KEY_LEN + 1)], "at most 1024 bytes").await;
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_sixteen_keys_is_one() {
    let keys: Vec<String> = (0..MAX_WAIT_KEYS).map(|number| number.to_string()).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let world = World::without_hook(Scripted::waits_for(&keys, Duration::MAX));
    let (runtime, _running) = world.running();
    submit(&runtime, RUN).await;
    until_it_waits(&runtime, RUN).await;
    assert_eq!(world.rows("signal"), MAX_WAIT_KEYS);
    assert_eq!(runtime.signal("15", b"x".to_vec()).await.unwrap(), SignalOutcome::Delivered);
    assert_eq!(result_of(&runtime, RUN).await, "15=x");
    assert_eq!(world.rows("signal"), 0);
}
