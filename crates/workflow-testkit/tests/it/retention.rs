//! What is promised of runs that have ended: how long they are kept, and that nothing of them is left afterwards.

mod cost;
mod everything;
mod forget;
mod interrupted;
mod orphans;
mod reuse;
mod window;
mod zoo;
