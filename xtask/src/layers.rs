//! The layers as data: which crate may depend on what. A new edge is a line here, in a commit
//! of its own that gives the reason.

use crate::finding::Finding;
use crate::workspace::{Dependency, DependencyKind, Origin, Package};

#[cfg(test)]
mod tests;

/// What one crate may depend on. Dev-dependencies are free.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layer {
    name: &'static str,
    workspace: &'static [&'static str],
    external: &'static [&'static str],
}

/// Every crate of the workspace, lowest first.
pub(crate) const LAYERS: &[Layer] = &[
    Layer { name: "workflow-core", workspace: &[], external: &["bytes", "thiserror"] },
    Layer {
        name: "workflow-effects",
        workspace: &["workflow-core"],
        external: &["async-trait", "bincode", "bytes", "futures", "object_store", "serde", "thiserror"],
    },
    Layer {
        name: "workflow-memo",
        workspace: &["workflow-core", "workflow-effects"],
        external: &["bytes", "serde", "serde_json", "sha2", "thiserror"],
    },
    Layer {
        name: "workflow-runtime",
        workspace: &["workflow-core", "workflow-effects", "workflow-memo"],
        external: &[
            "async-trait",
            "bytes",
            "futures",
            "object_store",
            "rand",
            "sha2",
            "slatedb",
            "taquba",
            "thiserror",
            "tokio",
            "tokio-util",
            "tracing",
            "ulid",
            "url",
        ],
    },
    Layer {
        name: "workflow-testkit",
        workspace: &["workflow-core", "workflow-effects", "workflow-memo", "workflow-runtime"],
        external: &[
            "async-trait",
            "bytes",
            "futures",
            "object_store",
            "proptest",
            "proptest-state-machine",
            "serde",
            "tokio",
            "tokio-util",
        ],
    },
    Layer { name: "xtask", workspace: &[], external: &["anyhow", "serde_json", "xflags", "xshell"] },
];

/// Depends on the crates whose tests use it. Publishing drops a dev-dependency without a version and breaks the circle.
const PATH_ONLY: &str = "workflow-testkit";

/// Checks the whole workspace: its dependencies, and that it and `layers` name the same crates.
pub(crate) fn check(layers: &[Layer], packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        findings.extend(check_package(layers, package));
    }
    for layer in layers {
        if !packages.iter().any(|package| package.name == layer.name) {
            findings.push(Finding::in_file(
                layer.name,
                "in the table of layers (xtask/src/layers.rs) but not in the workspace",
            ));
        }
    }
    findings
}

/// Finds dependencies of one crate that `layers` does not allow.
pub(crate) fn check_package(layers: &[Layer], package: &Package) -> Vec<Finding> {
    let Some(layer) = layers.iter().find(|layer| layer.name == package.name) else {
        let message = "not in the table of layers (xtask/src/layers.rs)";
        return vec![Finding::in_file(&package.name, message)];
    };
    let messages = package.dependencies.iter().filter_map(|dependency| match dependency.kind {
        DependencyKind::Normal | DependencyKind::Build => check_edge(layer, dependency),
        DependencyKind::Dev => check_dev(dependency),
    });
    messages.map(|message| Finding::in_file(&package.name, message)).collect()
}

fn check_edge(layer: &Layer, dependency: &Dependency) -> Option<String> {
    let (allowed, what) = match dependency.origin {
        Origin::Workspace => (layer.workspace, "workspace"),
        Origin::External => (layer.external, "external"),
    };
    let name = dependency.name.as_str();
    (!allowed.contains(&name))
        .then(|| format!("its layer has no {what} dependency on `{name}` (table in xtask/src/layers.rs)"))
}

fn check_dev(dependency: &Dependency) -> Option<String> {
    let versioned = dependency.name == PATH_ONLY && dependency.requirement != "*";
    versioned.then(|| format!("its dev-dependency on `{PATH_ONLY}` must be path-only"))
}
