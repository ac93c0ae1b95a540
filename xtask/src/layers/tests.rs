//! Both ways for every rule of the layer table.

use super::{LAYERS, Layer, check};
use crate::workspace::{Dependency, DependencyKind, Origin, Package};

use DependencyKind::{Build, Dev, Normal};
use Origin::{External, Workspace};

const TABLE: &[Layer] = &[Layer { name: "upper", workspace: &["lower"], external: &["bytes"] }];

fn package(name: &str, dependencies: &[(&str, DependencyKind, Origin, &str)]) -> Package {
    let dependencies = dependencies.iter().map(|&(name, kind, origin, requirement)| Dependency {
        name: name.to_owned(),
        kind,
        requirement: requirement.to_owned(),
        origin,
    });
    Package { name: name.to_owned(), features: Vec::new(), dependencies: dependencies.collect() }
}

fn check_edge(edge: (&str, DependencyKind, Origin, &str), expected: &[&str]) {
    check_packages(&[package("upper", &[edge])], expected);
}

fn check_packages(packages: &[Package], expected: &[&str]) {
    let findings = check(TABLE, packages);
    let findings: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert_eq!(findings, expected);
}

#[test]
fn an_edge_of_the_table_is_allowed() {
    check_edge(("lower", Normal, Workspace, "^0.1.0"), &[]);
    check_edge(("bytes", Normal, External, "^1"), &[]);
}

#[test]
fn an_edge_outside_the_table_is_found() {
    let expected = "upper: its layer has no workspace dependency on `top` (table in xtask/src/layers.rs)";
    check_edge(("top", Normal, Workspace, "^0.1.0"), &[expected]);
    let expected = "upper: its layer has no external dependency on `tokio` (table in xtask/src/layers.rs)";
    check_edge(("tokio", Normal, External, "^1"), &[expected]);
    check_edge(("tokio", Build, External, "^1"), &[expected]);
}

#[test]
fn an_external_crate_cannot_pass_for_one_of_the_workspace() {
    let expected = "upper: its layer has no external dependency on `lower` (table in xtask/src/layers.rs)";
    check_edge(("lower", Normal, External, "^0.1.0"), &[expected]);
}

#[test]
fn dev_dependencies_are_free_and_the_testkit_is_path_only() {
    check_edge(("tokio", Dev, External, "^1"), &[]);
    check_edge(("workflow-testkit", Dev, Workspace, "*"), &[]);
    let expected = "upper: its dev-dependency on `workflow-testkit` must be path-only";
    check_edge(("workflow-testkit", Dev, Workspace, "^0.1.0"), &[expected]);
}

#[test]
fn the_table_and_the_workspace_name_the_same_crates() {
    check_packages(
        &[package("other", &[])],
        &[
            "other: not in the table of layers (xtask/src/layers.rs)",
            "upper: in the table of layers (xtask/src/layers.rs) but not in the workspace",
        ],
    );
}

#[test]
fn the_table_has_no_upward_edge() {
    for (index, layer) in LAYERS.iter().enumerate() {
        let lower = &LAYERS[..index];
        for dependency in layer.workspace {
            let found = lower.iter().any(|layer| layer.name == *dependency);
            assert!(found, "{} depends on {dependency}", layer.name);
        }
    }
}
