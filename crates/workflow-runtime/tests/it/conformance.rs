//! The contract of the port on Taquba.

mod reserved;
mod subject;

pub(crate) use self::subject::TaqubaDisk;

workflow_testkit::conformance!(TaqubaDisk);

mod reserved_keys {
    workflow_testkit::conformance!(super::reserved::ReservedKeys);
}
