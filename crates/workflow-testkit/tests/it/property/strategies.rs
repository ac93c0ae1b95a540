//! What the strategies draw: valid where it says so, hostile where it says that.

use std::sync::Arc;
use std::time::Duration;

use object_store::memory::InMemory;
use workflow_runtime::{
    HistoryLevel, NoopTerminalHook, RunSpec, Settings, Step, StepError, StepOutcome, StepRunner, WorkflowRuntime,
};
use workflow_testkit::property::proptest::collection::vec;
use workflow_testkit::property::proptest::prelude::*;
use workflow_testkit::property::proptest::test_runner::RngSeed;
use workflow_testkit::property::{
    Case, Property, clock_steps, durations, headers, hostile_run_ids, outcomes, payloads, port_plans, run_ids,
    schedules, signal_keys, store_plans,
};
use workflow_testkit::{Explorer, FaultyPort, FaultyStore, MemoryDisk, Outside, Sim};

type Answers = Vec<Result<StepOutcome, StepError>>;

/// Answers as it was drawn, then succeeds.
struct Drawn(Arc<Answers>);

impl StepRunner for Drawn {
    async fn run_step(&self, step: &Step) -> Result<StepOutcome, StepError> {
        let answer = self.0.get(step.step_number as usize).cloned();
        answer.unwrap_or_else(|| Ok(StepOutcome::Succeed { result: step.payload.clone() }))
    }
}

/// Echoes its input.
struct Echo;

impl StepRunner for Echo {
    async fn run_step(&self, step: &Step) -> Result<StepOutcome, StepError> {
        Ok(StepOutcome::Succeed { result: step.payload.clone() })
    }
}

/// `SEEDS=n` for n times as many cases.
fn config(cases: u32) -> ProptestConfig {
    let cases = cases * super::seeds();
    ProptestConfig { cases, rng_seed: RngSeed::Fixed(0), failure_persistence: None, ..ProptestConfig::default() }
}

#[test]
fn runs_of_any_id_input_and_headers_keep_their_promises() {
    let ids = prop_oneof![3 => run_ids(), 1 => hostile_run_ids()];
    let held = Property::of(|_| Echo)
        .run_ids(ids)
        .inputs(payloads())
        .headers(headers())
        .reuse_run_ids()
        .signals(signal_keys(), payloads())
        .cases(64)
        .run();
    assert!(held.steps > 100, "{held}");
}

proptest! {
    #![proptest_config(config(48))]

    #[test]
    fn whatever_steps_answer_their_runs_keep_their_promises(
        answers in vec(outcomes("key-[0-1]"), 0..4),
        inline_limit in prop_oneof![Just(8_usize), Just(32 * 1024)],
        replay in any::<bool>(),
        seed in any::<u16>(),
    ) {
        let settings = Settings { inline_limit, replay, history: HistoryLevel::Full, ..Settings::default() };
        let answers = Arc::new(answers);
        let property = Property::of(move |_| Drawn(answers.clone()))
            .settings(settings)
            .signals("key-[0-1]", payloads())
            .cases(2)
            .seed(seed.into());
        property.run();
    }

    #[test]
    fn valid_ids_and_headers_are_taken_and_hostile_ones_are_not(
        run_id in run_ids(), hostile in hostile_run_ids(), headers in headers(), input in payloads(),
    ) {
        let spec = |run_id: String| RunSpec {
            run_id: Some(run_id),
            input: input.clone(),
            headers: headers.clone().into_iter().collect(),
            ..RunSpec::default()
        };
        let (valid, hostile) = (spec(run_id), spec(hostile));
        Sim::run(0, move |sim| {
            let (valid, hostile) = (valid.clone(), hostile.clone());
            async move {
                let runtime = sim.start(Echo, NoopTerminalHook);
                assert!(runtime.submit(hostile).await.is_err());
                let (run_id, input) = (valid.run_id.clone().unwrap(), valid.input.clone());
                runtime.submit(valid).await.unwrap();
                assert_eq!(runtime.wait(&run_id).await.unwrap().result, Some(input));
            }
        });
    }

    #[test]
    fn schedules_are_replayed(schedule in schedules(30)) {
        let scenario = |sim: Sim| async move {
            let runtime = sim.start(Keyed(sim.outside()), NoopTerminalHook);
            runtime.submit(RunSpec { run_id: Some("run".to_owned()), ..RunSpec::default() }).await.unwrap();
            runtime.wait("run").await.unwrap();
        };
        prop_assert!(Explorer::new().replay(&schedule, scenario).is_ok(), "{}", schedule);
    }

    #[test]
    fn a_run_ends_whatever_faults_its_queue_and_store_meet(
        port in port_plans(), store in store_plans(), step in clock_steps(), pause in durations(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let result = runtime.block_on(async {
            let disk = MemoryDisk::default();
            let port = FaultyPort::new(Arc::new(disk.open()), port);
            let store = FaultyStore::new(Arc::new(InMemory::new()), store);
            let runtime = WorkflowRuntime::over(Arc::new(port), Arc::new(store), Echo, NoopTerminalHook)
                .inline_limit(8)
                .max_attempts_per_step(u32::MAX)
                .build()
                .unwrap();
            drop(runtime.spawn(std::future::pending()));
            let spec = RunSpec { run_id: Some("run".to_owned()), input: vec![b'x'; 100], ..RunSpec::default() };
            while runtime.submit(spec.clone()).await.is_err() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            disk.clock().set(step);
            tokio::time::sleep(pause.min(Duration::from_secs(60))).await;
            loop {
                match runtime.wait("run").await {
                    Ok(end) => return end.result,
                    Err(error) => assert!(!error.is_permanent(), "{error:?}"),
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
        prop_assert_eq!(result, Some(vec![b'x'; 100]));
    }
}

/// Does something under a key.
struct Keyed(Outside);

impl StepRunner for Keyed {
    async fn run_step(&self, step: &Step) -> Result<StepOutcome, StepError> {
        self.0.does_for(&step.run_id, "charge").await;
        Ok(StepOutcome::Succeed { result: Vec::new() })
    }
}

#[test]
fn a_hostile_id_is_refused_by_every_call() {
    let lines = ["cancel", "pause", "resume", "redrive", "forget"].map(|call| format!("{call} \"../run-0\""));
    let case: Case = format!("submit \"../run-0\" \"\"\n{}", lines.join("\n")).parse().unwrap();
    let held = Property::of(|_| Echo).check_case(&case).unwrap();
    assert_eq!((held.operations, held.steps), (6, 0));
}
