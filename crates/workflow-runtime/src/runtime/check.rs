//! Checking the whole store on request.

use super::WorkflowRuntime;
use crate::check::{Store, check};
use crate::{Result, StepRunner, TerminalHook, Violation};

impl<R, H> WorkflowRuntime<R, H>
where
    R: StepRunner + 'static,
    H: TerminalHook + 'static,
{
    /// Reads everything that is stored under the queue's name, with the jobs and the objects that it names, and tells what
    /// is wrong, in order: nothing, unless somebody else has changed the store or there is a bug. It changes nothing and
    /// needs no running loop. It takes as long as reading everything takes, and a request for each large value, but not
    /// more memory with more runs.
    ///
    /// A store in use changes while it is read. So where anything seems wrong, everything is read again, and what both
    /// readings have found alike is told. Of a store at rest, that is everything; of a store in use, what goes wrong
    /// while it is read is told by the next check.
    ///
    /// Objects that a crash has left are told once they are two days old: a running loop removes them before.
    ///
    /// Dropping the future has no effect.
    ///
    /// # Errors
    ///
    /// A transient error when the store, the queue or the object store cannot answer. What does not read is no error.
    pub async fn check(&self) -> Result<Vec<Violation>> {
        let engine = &self.engine;
        let store = Store { reads: engine.reads.clone(), port: engine.port.clone(), now: engine.clock.now() };
        check(&store).await
    }
}
