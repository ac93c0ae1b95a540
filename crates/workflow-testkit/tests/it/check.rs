//! What is wrong in a store is found, and nothing else: a store that only the runtime has written is clean at any time,
//! and whatever somebody else does to one row, job or object of it is told.

mod damage;
mod life;
mod removal;
mod store;
