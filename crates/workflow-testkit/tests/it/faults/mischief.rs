//! What happens beside the calls of a simulation.

use std::time::Duration;

use tokio::time::sleep;
use workflow_testkit::{Chance, ClockStep, MemoryDisk};

use super::plans::Faults;

/// Sets clocks, ends leases and holds writes back, by chance. Never ends.
pub(crate) async fn mischief(faults: Faults, disk: MemoryDisk, mut chance: Chance) {
    loop {
        sleep(Duration::from_millis(chance.below(3_000))).await;
        let by = Duration::from_millis(chance.below(5_000));
        match chance.below(4) {
            0 if faults.clock => disk.clock().set(ClockStep::Forwards(by)),
            1 if faults.clock => disk.clock().set(ClockStep::Back(by)),
            2 if faults.disk => drop(disk.end_leases()),
            3 if faults.disk => {
                disk.hold();
                sleep(by).await;
                disk.release();
            }
            _ => {}
        }
    }
}
