//! The workspace's packages as `cargo metadata` tells them, parsed into the few facts the checks need.

use anyhow::Context;
use serde_json::Value;
use xshell::{Shell, cmd};

#[cfg(test)]
mod tests;

/// A member of the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Names of its features, sorted.
    pub(crate) features: Vec<String>,
    pub(crate) dependencies: Vec<Dependency>,
}

/// A direct dependency of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) kind: DependencyKind,
    /// The version it asks for; `*` when it names none.
    pub(crate) requirement: String,
    pub(crate) origin: Origin,
}

/// When a dependency is compiled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DependencyKind {
    Normal,
    Build,
    Dev,
}

/// Where a dependency comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A folder of this repository.
    Workspace,
    External,
}

/// Asks cargo for the members of the workspace.
pub(crate) fn load(shell: &Shell) -> anyhow::Result<Vec<Package>> {
    let json = cmd!(shell, "cargo metadata --no-deps --format-version 1").quiet().read()?;
    parse(&json).context("cannot understand the output of `cargo metadata`")
}

fn parse(json: &str) -> anyhow::Result<Vec<Package>> {
    let metadata: Value = serde_json::from_str(json)?;
    array(&metadata, "packages")?.iter().map(parse_package).collect()
}

fn parse_package(package: &Value) -> anyhow::Result<Package> {
    let features = package["features"].as_object().context("`features` is not an object")?;
    let mut features: Vec<String> = features.keys().cloned().collect();
    features.sort();
    Ok(Package {
        name: string(package, "name")?,
        features,
        dependencies: array(package, "dependencies")?.iter().map(parse_dependency).collect::<anyhow::Result<_>>()?,
    })
}

fn parse_dependency(dependency: &Value) -> anyhow::Result<Dependency> {
    let kind = match dependency["kind"].as_str() {
        None => DependencyKind::Normal,
        Some("build") => DependencyKind::Build,
        Some("dev") => DependencyKind::Dev,
        Some(other) => anyhow::bail!("unknown kind of dependency `{other}`"),
    };
    let origin = match dependency["path"].as_str() {
        Some(_) => Origin::Workspace,
        None => Origin::External,
    };
    Ok(Dependency { name: string(dependency, "name")?, kind, requirement: string(dependency, "req")?, origin })
}

fn array<'a>(value: &'a Value, key: &str) -> anyhow::Result<&'a Vec<Value>> {
    value[key].as_array().with_context(|| format!("`{key}` is not an array"))
}

fn string(value: &Value, key: &str) -> anyhow::Result<String> {
    let text = value[key].as_str();
    let text = text.with_context(|| format!("`{key}` is not a string"))?;
    Ok(text.to_owned())
}
