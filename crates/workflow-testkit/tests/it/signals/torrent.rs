//! Many signals from many tasks to one run that takes one a step, over processes that die at random commits.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::join_all;
use workflow_runtime::{SignalOptions, StepOutcome};
use workflow_testkit::{Chance, FaultyPort, Plan, PortCalls, PortFault};

use crate::scripted::{RUN, Runtime, Scripted, World, result_of, submit};

const SENDERS: usize = 8;

/// What a sender has done so far. It outlives the processes.
#[derive(Default)]
struct Sender {
    /// How many signals were begun.
    begun: usize,
    /// Those that were acknowledged.
    acknowledged: Vec<usize>,
}

/// Collects what comes, one signal a step, until the last.
fn collects() -> Scripted {
    Scripted::new(|mut step| async move {
        let signal = step.signal.unwrap_or_default();
        if signal == b"last" {
            return Ok(StepOutcome::Succeed { result: step.payload });
        }
        if step.step_number == 0 {
            step.payload.clear();
        } else {
            step.payload.extend(signal);
            step.payload.push(b' ');
        }
        Ok(StepOutcome::continue_on_signal(step.payload, "k", Duration::MAX))
    })
}

/// Sends what is left of `count` signals. With ids, a signal that was not acknowledged is sent again; without, nobody
/// knows, and the next one follows.
async fn send(runtime: &Runtime, name: usize, sender: &Mutex<Sender>, count: usize, ids: bool) {
    loop {
        let number = {
            let mut sender = sender.lock().unwrap();
            let number = if ids { sender.acknowledged.len() } else { sender.begun };
            sender.begun = number + 1;
            number
        };
        if number >= count {
            return;
        }
        let text = format!("{name}:{number}");
        let options = SignalOptions { id: ids.then(|| text.clone()) };
        runtime.signal_with("k", text.into(), options).await.unwrap();
        sender.lock().unwrap().acknowledged.push(number);
    }
}

/// Lets the senders send over as many processes as it takes. Gives what the run saw, by sender, and what was
/// acknowledged, and how many processes died.
async fn storm(
    seed: u64,
    count: usize,
    ids: bool,
    power: u64,
) -> (BTreeMap<usize, Vec<usize>>, Vec<Vec<usize>>, usize) {
    let (mut chance, mut world, mut deaths) = (Chance::of(seed), World::without_hook(collects()), 0);
    world.settings.max_attempts_per_step = u32::MAX;
    let senders: Arc<Vec<Mutex<Sender>>> = Arc::new((0..SENDERS).map(|_| Mutex::default()).collect());
    loop {
        let runtime = world.runtime();
        world.disk.cut_power_after(1 + chance.below(power));
        let all = async {
            submit(&runtime, RUN).await;
            join_all(senders.iter().enumerate().map(|(name, sender)| send(&runtime, name, sender, count, ids))).await;
        };
        let is_done = tokio::select! {
            biased;
            ended = runtime.run(pending()) => panic!("the loop ended by itself: {ended:?}"),
            () = world.disk.cut() => false,
            () = all => true,
        };
        deaths += usize::from(!is_done);
        world.crash();
        if is_done {
            break;
        }
    }
    let (runtime, _running) = world.running();
    runtime.signal("k", b"last".to_vec()).await.unwrap();
    let mut seen = BTreeMap::<_, Vec<_>>::new();
    for signal in result_of(&runtime, RUN).await.split_whitespace() {
        let (sender, number) = signal.split_once(':').unwrap();
        seen.entry(sender.parse().unwrap()).or_default().push(number.parse().unwrap());
    }
    assert_eq!((world.rows("signal"), world.rows("signal-item")), (0, 0));
    let acknowledged = senders.iter().map(|sender| std::mem::take(&mut sender.lock().unwrap().acknowledged));
    (seen, acknowledged.collect(), deaths)
}

#[tokio::test(start_paused = true)]
async fn a_thousand_signals_with_ids_are_each_seen_once_in_the_order_of_their_senders() {
    let count = 1_000 / SENDERS;
    let (seen, _, deaths) = storm(11, count, true, 400).await;
    assert!(deaths > 3, "only {deaths} processes died");
    assert_eq!(seen.len(), SENDERS);
    for (sender, numbers) in seen {
        assert!(numbers.iter().copied().eq(0..count), "sender {sender}: {numbers:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn signals_without_ids_are_seen_once_if_acknowledged_and_at_most_once_otherwise() {
    let mut lost = 0;
    for seed in 0..3 {
        let (seen, acknowledged, deaths) = storm(seed, 25, false, 100).await;
        assert!(deaths > 0);
        for (sender, acknowledged) in acknowledged.iter().enumerate() {
            let seen = seen.get(&sender).cloned().unwrap_or_default();
            assert!(seen.is_sorted_by(|a, b| a < b), "seed {seed}, sender {sender}: {seen:?}");
            assert!(acknowledged.iter().all(|number| seen.contains(number)), "seed {seed}: {acknowledged:?} {seen:?}");
            lost += 25 - seen.len();
        }
    }
    assert!(lost > 0, "no crash came between a signal and its commit");
}

/// The port of the senders fails, and loses answers for a moment or for long: who sends again with the same id sends
/// once.
#[tokio::test(start_paused = true)]
async fn signals_with_ids_are_each_seen_once_over_a_port_that_fails() {
    let rates = [
        (PortCalls::Commit, 150, PortFault::Fails),
        (PortCalls::Commit, 150, PortFault::AnswerLost),
        (PortCalls::Commit, 150, PortFault::AnswerLostForLong(Duration::from_millis(50))),
        (PortCalls::Get, 50, PortFault::Fails),
    ];
    let world = World::without_hook(collects());
    let port = FaultyPort::new(Arc::new(world.queue.clone()), Plan::random(3, rates));
    let (sender, (runtime, _running)) = (world.over(Arc::new(port.clone())), world.running());
    submit(&runtime, RUN).await;
    let sends = (0..SENDERS).map(|name| {
        let sender = &sender;
        async move {
            for number in 0..12 {
                let text = format!("{name}:{number}");
                let options = SignalOptions { id: Some(text.clone()) };
                while sender.signal_with("k", text.clone().into(), options.clone()).await.is_err() {}
            }
        }
    });
    join_all(sends).await;
    runtime.signal("k", b"last".to_vec()).await.unwrap();
    let seen = result_of(&runtime, RUN).await;
    for name in 0..SENDERS {
        let of_one: Vec<_> = seen.split_whitespace().filter(|text| text.starts_with(&format!("{name}:"))).collect();
        let expected: Vec<_> = (0..12).map(|number| format!("{name}:{number}")).collect();
        assert_eq!(of_one, expected);
    }
    assert!(port.met().rules.len() > 30);
}
