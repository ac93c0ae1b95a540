//! The contract of the port on Taquba.

mod subject;

pub(crate) use self::subject::TaqubaDisk;

workflow_testkit::conformance!(TaqubaDisk);
