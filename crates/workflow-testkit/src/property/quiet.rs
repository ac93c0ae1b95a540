//! Panics that nobody needs to read: while a case is looked for and shrunk, hundreds of assertions fail.

use std::cell::Cell;
use std::panic;
use std::sync::Once;

thread_local! {
    /// Whether panics of this thread are not told.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Ends the quiet, however what was called ends.
struct Loud;

impl Drop for Loud {
    fn drop(&mut self) {
        QUIET.set(false);
    }
}

/// Calls `call`, whose panics on this thread the process's panic hook is not told of.
pub(super) fn quietly<T>(call: impl FnOnce() -> T) -> T {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let hook = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                hook(info);
            }
        }));
    });
    let _loud = Loud;
    QUIET.set(true);
    call()
}
