//! Memoization of a run's paid-for work: what a step has computed and stored is not computed again, not on a retry, not
//! after a crash, and (in the run's memo) not by a later step.
//!
//! A crash between the work and the store repeats the work. Where the work has effects outside, such as a charge, give
//! it an idempotency key that is the same on every attempt, such as the run's id and the memo's key.
//!
//! A [`Memo`] keeps bytes ([`Memo::get`], [`Memo::put`]) or typed values ([`Memo::memoized`],
//! [`Memo::memoized_by_content`]). A value is durable when the call that stored it returns. A late attempt, one that a
//! newer attempt of its run has overtaken, can neither replace what the newer one stored nor store anything once it
//! is known to have ended.
//!
//! ```
//! use workflow_memo::{Error, Memo};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! let memo = Memo::detached();
//! let price: u32 = memo.memoized("price", async { Ok::<_, Error>(17) }).await?;
//! let again: u32 = memo.memoized("price", async { Ok::<_, Error>(unreachable!("it is stored")) }).await?;
//! assert_eq!((price, again), (17, 17));
//! # Ok(())
//! # }
//! ```

mod codec;
mod error;
mod memo;
mod spawn;

pub use error::{Error, Result};
pub use memo::{MAX_MEMO_KEY_LEN, Memo, MemoContext};
pub use spawn::{Spawn, Work};
