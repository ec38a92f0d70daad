//! Programs of crates.io that check and package, each at one version, in a folder of their own.

use std::path::PathBuf;
use std::time::Duration;

use crate::Result;
use crate::run::run;
use crate::steps::{Bench, cargo};

/// A program and its version.
pub(crate) struct CargoTool {
    name: &'static str,
    version: &'static str,
}

/// Packs the Debian package.
pub(crate) const DEB: CargoTool = CargoTool { name: "cargo-deb", version: "3.8.0" };

/// Checks licences, sources and advisories of the dependencies.
pub(crate) const DENY: CargoTool = CargoTool { name: "cargo-deny", version: "0.20.2" };

/// Builds with the list of crates in the binary.
pub(crate) const AUDITABLE: CargoTool = CargoTool { name: "cargo-auditable", version: "0.7.7" };

/// Lists the crates of a build as CycloneDX.
pub(crate) const CYCLONEDX: CargoTool = CargoTool { name: "cargo-cyclonedx", version: "0.5.9" };

const INSTALL_MAX: Duration = Duration::from_secs(1800);

impl CargoTool {
    /// Builds the program unless it is there, and says where it is.
    ///
    /// # Errors
    /// It cannot be built.
    pub(crate) fn installed(&self, bench: &Bench) -> Result<PathBuf> {
        let folder = bench.scratch.join("tools");
        let mut install = cargo(&["install", "--locked", self.name, "--version", self.version]);
        install.arg("--root").arg(&folder).env("CARGO_TARGET_DIR", folder.join("target"));
        let outcome = run(&mut install, &bench.log(self.name), INSTALL_MAX)?;
        if !outcome.ended_well {
            return Err(format!("cannot install {}\n{}", self.name, outcome.tail()).into());
        }
        Ok(folder.join("bin").join(self.name))
    }
}
